import sys
sys.stdout.buffer.write(b"\xff\xfe before\n")
print("after")
