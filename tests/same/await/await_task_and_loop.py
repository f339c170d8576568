import asyncio
loop = asyncio.get_running_loop()
task = asyncio.create_task(asyncio.sleep(0, "value"))
print(await task, loop is asyncio.get_running_loop())
