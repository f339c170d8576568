import inspect
def f():
    return """a
b"""
print(repr(f()))
print(repr(inspect.getsource(f)))
