print("await nothing", __file__)
import sys
print(sys.argv, sys.orig_argv[1:], sys.path[0])
raise ValueError("await")
