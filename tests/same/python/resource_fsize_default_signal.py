import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
f = open("f", "wb", buffering=0)
f.write(b"x" * 10)
f.write(b"x")
