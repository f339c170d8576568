def f(n):
    return f(n - 1) if n else 1 / 0
f(20)
