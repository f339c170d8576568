import os
print(len(os.listdir("/proc/self/task")))
