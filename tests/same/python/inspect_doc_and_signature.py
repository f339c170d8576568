import inspect
def f(x: int, *args, key="v", **kw) -> str: ...
print(inspect.signature(f), f.__module__, f.__qualname__, f.__code__.co_filename, f.__code__.co_firstlineno)
print(f.__globals__ is globals(), f.__builtins__ is __builtins__.__dict__)
