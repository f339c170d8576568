import atexit, os, signal
atexit.register(lambda: os.kill(os.getpid(), signal.SIGTERM))
print("ends by a signal in a handler")
