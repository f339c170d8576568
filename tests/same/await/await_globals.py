import asyncio
x = 1
await asyncio.sleep(0)
def f(): return x
x = 2
print(f(), "x" in globals())
