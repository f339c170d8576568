import inspect, sys
def zebra(): pass
class Ape: pass
m = sys.modules["__main__"]
print([n for n, _ in inspect.getmembers(m, inspect.isfunction)], [n for n, v in inspect.getmembers(m, inspect.isclass) if v.__module__ == "__main__"])
