import sys
print([s.buffer.raw.closefd if hasattr(s.buffer, "raw") else s.buffer.closefd for s in (sys.stdin, sys.stdout, sys.stderr)])
