import asyncio
async def f(n, mine, next_one):
    await mine.wait()
    print("done", n)
    next_one.set()
    return n
async def main():
    doors = [asyncio.Event() for _ in range(4)]
    doors[3].set()
    print(await asyncio.gather(*(f(n, doors[n + 1], doors[n]) for n in range(3))))
asyncio.run(main())
