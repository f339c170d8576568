import inspect
def f(a, b=2):
    """Doc."""
    return a + b  # a comment
class C:
    def m(self):
        return 1
print(inspect.getsource(f))
print(inspect.getsource(C.m))
print(inspect.getsourcefile(f), inspect.getsourcelines(C)[1])
