import builtins, sys
builtins.print = lambda *a, **k: sys.stdout.write("patched\n")
print("x")
raise SystemExit(4)
