import sys
print("__cached__" in globals(), globals().get("__cached__"))
m = sys.modules["__main__"]
print(m.__dict__ is globals(), m.__name__, m.__file__)
print(repr(m))
