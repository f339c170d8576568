import asyncio
async def forever():
    try:
        await asyncio.sleep(100)
    except asyncio.CancelledError:
        print("cancelled"); raise
async def main():
    asyncio.create_task(forever())
    await asyncio.sleep(0)
asyncio.run(main())
