import asyncio
await asyncio.sleep(0)
print("after")
