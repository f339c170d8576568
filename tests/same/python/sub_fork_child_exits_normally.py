import os, sys, atexit
atexit.register(print, "atexit runs in both")
pid = os.fork()
if pid == 0:
    sys.exit(2)
print("child gave", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
