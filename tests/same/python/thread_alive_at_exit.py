import threading, time
def work():
    time.sleep(0.4)
    print("the thread ends after main")
threading.Thread(target=work).start()
print("main ends")
