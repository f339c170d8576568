import threading, sys
t = threading.Thread(target=sys.exit, args=(9,))
t.start()
t.join()
print("only the thread left")
