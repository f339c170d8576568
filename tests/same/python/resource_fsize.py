import resource, signal
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
with open("f", "wb", buffering=0) as f:
    print(f.write(b"x" * 2000))
    f.write(b"x")
