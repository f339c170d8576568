import atexit, threading, time
atexit.register(print, "atexit comes after the threads")
def work():
    time.sleep(0.05)
    print("thread")
threading.Thread(target=work).start()
