# No await at the top level: an ordinary program, with asyncio.run of its own.
import asyncio
async def main():
    await asyncio.sleep(0)
    print("own loop")
asyncio.run(main())
