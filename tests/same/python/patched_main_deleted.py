import sys
del sys.modules["__main__"]
print(__name__)
raise KeyError("main is gone")
