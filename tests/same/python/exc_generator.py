def g():
    yield 1
    raise RuntimeError("in a generator")
print(list(g()))
