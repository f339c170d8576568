import sys
sys.setrecursionlimit(5000)
def f(n): return n and f(n - 1)
print(f(4900))
