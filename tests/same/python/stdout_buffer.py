import sys
sys.stdout.buffer.write(b"bytes \xc3\xa9\n")
sys.stdout.buffer.flush()
print("text é")
