# stdin: "\u0000\u0001\u007f\u00ff\r\n"
import sys
print(sys.stdin.buffer.read())
