import asyncio
async def bad(): raise KeyError("nobody looked")
async def main():
    asyncio.create_task(bad(), name="T")
    await asyncio.sleep(0.01)
asyncio.run(main())
