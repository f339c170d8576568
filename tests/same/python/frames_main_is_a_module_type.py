import sys, types
m = sys.modules["__main__"]
print(type(m) is types.ModuleType, m.__class__.__name__, m.__spec__, list(m.__dict__)[:8])
