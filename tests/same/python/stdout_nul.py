import sys
sys.stdout.write("a\0b\x1b[1m\r\n")
