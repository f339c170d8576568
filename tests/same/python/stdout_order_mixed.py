import sys, os
print("1 print")
sys.stdout.write("2 write\n")
os.write(1, b"3 os.write\n")
sys.stdout.buffer.write(b"4 buffer\n")
sys.stdout.flush()
os.system("echo 5 system")
print("6 print")
