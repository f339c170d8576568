# Every processor, from many processes and sessions.
import os
for _ in range(24):
    if os.fork() == 0:
        os.setsid()
        break
while True:
    pass
