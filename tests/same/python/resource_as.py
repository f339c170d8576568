import resource
resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
try:
    x = bytearray(800 << 20)
except MemoryError:
    print("MemoryError")
