# files: {"asyncio/__init__.py": "mine = 5\n", "collections/abc.py": "mine = 6\n", "logging.py": "mine = 7\n"}
import asyncio, logging, collections.abc
print(asyncio.mine, logging.mine, hasattr(collections.abc, "mine"))
