import gc, weakref
class N: pass
n = N(); n.me = n
r = weakref.ref(n, lambda _: print("collected"))
del n
gc.collect()
