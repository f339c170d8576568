import threading
threading._shutdown = lambda: print("our own shutdown")
print("main")
