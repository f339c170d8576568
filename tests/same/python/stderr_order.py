import sys
print("to stderr 1", file=sys.stderr)
sys.stderr.write("partial ")
sys.stderr.flush()
sys.stderr.buffer.write(b"bytes\n")
