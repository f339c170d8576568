import builtins
real = builtins.__import__
def noisy(name, *rest):
    print("import", name)
    return real(name, *rest)
builtins.__import__ = noisy
import string
raise ValueError("no import happens for this")
