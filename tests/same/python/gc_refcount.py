import sys
x = object()
print(sys.getrefcount(x), sys.getrefcount("a string literal of this program only") < 6)
