# args: ["a", "b c"]
import sys
async def bad():
    try:
        1 / 0
    except ZeroDivisionError as error:
        raise KeyError("second") from error
print(sys.argv)
await bad()
