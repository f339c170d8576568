import asyncio, sys
await asyncio.sleep(0)
class C: pass
print(__name__, __file__, C.__module__, sys.modules["__main__"].C is C)
