# files: {"mod.py": "n = 1\n"}
import mod, importlib
mod.n = 5
print(importlib.reload(mod).n)
