import os, stat
mode = os.fstat(0).st_mode
print(stat.S_ISCHR(mode), stat.S_ISFIFO(mode))
