import os
fds = sorted(map(int, os.listdir("/proc/self/fd")))
print(fds)
