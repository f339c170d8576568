import os, sys
print(os.readlink("/proc/self/exe") == os.path.realpath(sys.executable), os.readlink("/proc/self/cwd"), os.readlink("/proc/self/root"))
