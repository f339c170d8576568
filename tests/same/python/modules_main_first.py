import sys
print("__main__" in sys.modules, "sys" in sys.modules, "no_such" in sys.modules)
# None of these is in a plain interpreter that imported only sys.
print([n for n in ("hotcell", "worker", "zygote", "bootstrap", "runner") if n in sys.modules])
