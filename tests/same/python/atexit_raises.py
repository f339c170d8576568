import atexit
def bad():
    raise ValueError("in a handler")
atexit.register(print, "the first registered runs last")
atexit.register(bad)
print("main")
