import asyncio
try:
    asyncio.get_running_loop()
except RuntimeError as error:
    print(error)
asyncio.run(asyncio.sleep(0))
asyncio.run(asyncio.sleep(0))
print(type(asyncio.get_event_loop_policy()).__name__)
