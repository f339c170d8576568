import threading
threading.Timer(0.4, print, ["tick"]).start()
print("tock")
