import os, pathlib
print(os.path.expanduser("~"), pathlib.Path.home(), os.path.isdir(os.path.expanduser("~")))
