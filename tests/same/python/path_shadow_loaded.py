# A module that a warm interpreter may have loaded already must still be the program's own.
# files: {"json.py": "answer = 42\n", "random.py": "answer = 43\n", "dataclasses.py": "answer = 44\n"}
import json, random, dataclasses
print(json.answer, random.answer, dataclasses.answer)
