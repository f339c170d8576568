import weakref
class N: pass
hits = []
for _ in range(5000):
    n = N(); n.me = n
    weakref.finalize(n, hits.append, 1).atexit = False
print(len(hits) > 1000)
