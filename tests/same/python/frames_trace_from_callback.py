import sys
def names():
    f, out = sys._getframe(1), []
    while f: out.append((f.f_code.co_name, f.f_code.co_filename)); f = f.f_back
    return out
print(sorted([3, 1, 2], key=lambda n: (n, print(names()))[0])[:1])
