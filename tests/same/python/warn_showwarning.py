import warnings
warnings.showwarning = lambda *a, **k: print("shown", a[0], a[1].__name__, a[3])
warnings.warn("x")
