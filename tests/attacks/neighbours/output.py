# Prints as fast as it can, to both streams, until it is ended for it.
import os
while True:
    os.write(1, b'\x1b[2J' * 16384)
    os.write(2, b'{"jsonrpc":"2.0","id":1,"result":{}}\n' * 1024)
