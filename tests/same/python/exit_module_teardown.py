# Globals are gone in the order of the interpreter, not of a wrapper.
class Loud:
    def __init__(self, name): self.name = name
    def __del__(self): print("bye", self.name)
a = Loud("a")
b = Loud("b")
_private = Loud("_private")
