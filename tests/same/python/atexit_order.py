import atexit
for n in range(3):
    atexit.register(print, "handler", n)
print("main done")
