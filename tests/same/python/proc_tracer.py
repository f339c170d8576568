import ctypes
libc = ctypes.CDLL(None)
print(libc.prctl(2, 0, 0, 0, 0) if False else "no tracer", libc.prctl(3, 0, 0, 0, 0))
