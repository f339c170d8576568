# files: {"textwrap.py": "answer = 1\n", "decimal.py": "answer = 2\n", "statistics.py": "answer = 3\n"}
import textwrap, decimal, statistics
print(textwrap.answer, decimal.answer, statistics.answer)
