class Outer:
    class Inner(Exception): pass
def f():
    class Local(Outer.Inner): pass
    raise Local("qualified")
f()
