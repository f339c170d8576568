# stdin: "1\n2\n3\n"
import sys
print(sum(map(int, sys.stdin)))
