import os
fd = os.open("/dev/null", os.O_RDONLY)
print(fd, os.get_inheritable(fd))
