import sys, os
print(sys.executable, sys.prefix, sys.base_prefix, sys.exec_prefix)
print(os.path.samefile(sys.executable, "/proc/self/exe"))
