import atexit, os
atexit.register(print, "never")
print("said")
os._exit(3)
