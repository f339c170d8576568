def f():
    raise ValueError("at line 2")
f()
