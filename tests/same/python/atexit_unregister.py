import atexit
def f():
    print("gone")
atexit.register(f)
atexit.unregister(f)
print(atexit._ncallbacks())
