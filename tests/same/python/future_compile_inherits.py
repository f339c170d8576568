from __future__ import annotations
ns = {}
exec("def f(x: nope): ...", ns)
print(ns["f"].__annotations__)
