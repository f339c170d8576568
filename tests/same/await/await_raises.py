import asyncio
async def bad():
    raise ValueError("in a coroutine")
print("before")
await bad()
