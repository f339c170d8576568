import threading, time
threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
print("main does not wait")
