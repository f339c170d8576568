import sys
for s in (sys.stdin, sys.stdout, sys.stderr):
    print(s.line_buffering, s.write_through, type(s.buffer).__name__, type(getattr(s.buffer, "raw", s.buffer)).__name__, s.newlines)
print(repr(sys.stdout))
