import asyncio, sys
await asyncio.sleep(0)
print("leaving")
sys.exit(3)
