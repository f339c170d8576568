try:
    bytearray(1 << 62)
except MemoryError as error:
    print("caught", repr(error))
