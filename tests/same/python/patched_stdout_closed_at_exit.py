import sys, atexit
atexit.register(lambda: sys.stderr.write("last words\n"))
sys.stdout = open("/dev/null", "w")
print("unseen")
