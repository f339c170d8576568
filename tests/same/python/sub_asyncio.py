import asyncio
async def main():
    p = await asyncio.create_subprocess_exec("sh", "-c", "echo out; exit 3", stdout=asyncio.subprocess.PIPE)
    print(await p.communicate(), p.returncode)
asyncio.run(main())
