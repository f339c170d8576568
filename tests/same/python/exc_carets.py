def f(a, b):
    return a["x"]["y"] + (b / 0)
f({"x": {"y": 1}}, 2)
