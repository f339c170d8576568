import asyncio
async def f(n):
    await asyncio.sleep(0.01 * (3 - n))
    print("done", n)
    return n
async def main(): print(await asyncio.gather(*map(f, range(3))))
asyncio.run(main())
