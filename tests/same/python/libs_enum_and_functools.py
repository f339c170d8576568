import enum, functools
class E(enum.Flag):
    A = enum.auto(); B = enum.auto()
@functools.singledispatch
def f(x): return "any"
@f.register
def _(x: int): return "int"
print(E.A | E.B, f(1), f(""), functools.lru_cache(lambda x: x).cache_info())
