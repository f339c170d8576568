import asyncio
async def f(n):
    await asyncio.sleep(0.01 * (3 - n))
    return n
print(await asyncio.gather(*map(f, range(3))))
