import os
print(os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid())
