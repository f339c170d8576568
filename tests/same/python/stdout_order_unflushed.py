# With -u nothing waits in a buffer, so a killed program has said all of it.
import os, sys
sys.stdout.write("no newline and ")
sys.stdout.buffer.write(b"no flush")
os._exit(0)
