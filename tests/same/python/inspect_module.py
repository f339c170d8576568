import inspect, sys
print(inspect.getsource(sys.modules["__main__"]))
print(inspect.getfile(inspect.currentframe()), inspect.getmodule(inspect.currentframe()).__name__)
