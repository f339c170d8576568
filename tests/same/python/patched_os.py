import os, sys
os._exit = os.write = os.kill = os.waitpid = os.close = os.fork = os.dup2 = None
print("patched")
sys.exit(3)
