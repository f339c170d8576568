import atexit, sys
def leave():
    sys.exit(9)
atexit.register(leave)
