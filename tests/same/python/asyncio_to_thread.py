import asyncio, threading
async def main(): print(await asyncio.to_thread(lambda: threading.current_thread() is threading.main_thread()))
asyncio.run(main())
