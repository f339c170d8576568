import threading
local = threading.local()
local.x = 1
def work(): print(hasattr(local, "x"))
t = threading.Thread(target=work); t.start(); t.join()
print(local.x)
