import contextlib
async def numbers():
    for n in range(3):
        yield n
@contextlib.asynccontextmanager
async def opened():
    print("open")
    yield 5
    print("closed")
async for n in numbers():
    print(n)
async with opened() as five:
    print(five)
print([n async for n in numbers()])
