import atexit, sys
atexit.register(lambda: sys.stdout.write("without an end"))
