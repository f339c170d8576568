print(type(__loader__).__name__, type(__loader__).__module__)
print(__loader__.name, __loader__.path)
print(__loader__.get_source("__main__").splitlines()[0])
