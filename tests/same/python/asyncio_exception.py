import asyncio
async def inner(): raise ValueError("in a coroutine")
async def main(): await inner()
asyncio.run(main())
