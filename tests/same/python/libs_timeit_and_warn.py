import timeit
print(timeit.timeit("x + 1", "x = 1", number=10) >= 0)
