import sys, os
print(sys.executable, sys.prefix, sys.base_prefix, sys.exec_prefix)
print(os.path.realpath(sys.executable) == os.readlink("/proc/self/exe"))
