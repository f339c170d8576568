def a():
    try:
        int("x")
    except ValueError as e:
        raise TypeError("b") from e
try:
    a()
except TypeError:
    raise OSError(2, "No such thing", "name")
