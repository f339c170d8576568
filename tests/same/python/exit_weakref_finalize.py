import weakref
class Thing: pass
thing = Thing()
weakref.finalize(thing, print, "finalized at exit")
print("main")
