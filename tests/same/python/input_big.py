# stdin: "0123456789"
import sys
pieces = iter(lambda: sys.stdin.read(1), "")
print(list(pieces))
