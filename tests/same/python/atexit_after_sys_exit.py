import atexit, sys
atexit.register(print, "still called")
sys.exit(4)
