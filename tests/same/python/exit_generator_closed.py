def gen():
    try:
        yield 1
    finally:
        print("generator closed")
g = gen()
print(next(g))
