import asyncio
async def f(n):
    await asyncio.sleep(0)
    return n
try:
    if True:
        print(await f(1))
    with open(__file__) as file:
        for line in file:
            await f(line)
finally:
    print(await f(2))
