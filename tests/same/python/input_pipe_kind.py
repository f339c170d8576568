# stdin: "x"
import os, stat, sys
print(stat.S_ISCHR(os.fstat(0).st_mode), stat.S_ISREG(os.fstat(0).st_mode), sys.stdin.seekable())
