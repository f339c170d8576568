import os, threading, time
def leave():
    print("leaving from a thread")
    os._exit(12)
threading.Thread(target=leave).start()
time.sleep(10)
