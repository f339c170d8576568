import threading, time
def work():
    time.sleep(0.1)
    print("after the traceback")
threading.Thread(target=work).start()
raise RuntimeError("main dies")
