# stdin: "žluťoučký\nкот 🐈\n"
import sys
text = sys.stdin.read()
print(text, len(text))
