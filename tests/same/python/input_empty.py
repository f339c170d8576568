import sys
print(repr(sys.stdin.read()), repr(sys.stdin.buffer.read()), sys.stdin.isatty())
