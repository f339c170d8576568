# stdin: "abcdefghij"
import sys, os
print(sys.stdin.buffer.read(3), sys.stdin.buffer.peek()[:3], sys.stdin.read())
print(os.read(0, 10))
