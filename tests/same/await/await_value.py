async def f(x):
    return x * 2
x = await f(21)
print(x)
