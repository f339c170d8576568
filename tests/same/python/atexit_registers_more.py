import atexit
def outer():
    print("outer")
    atexit.register(print, "registered at exit")
atexit.register(outer)
