# Valid in no plain program.
import asyncio
await asyncio.sleep(0) if False else None
