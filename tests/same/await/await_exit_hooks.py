import asyncio, atexit, sys
atexit.register(print, "at exit")
await asyncio.sleep(0)
print(sorted(name for name in globals() if name not in dir(__builtins__) and not name.startswith("__")))
print(sys.path[0], __name__, __spec__, __package__)
