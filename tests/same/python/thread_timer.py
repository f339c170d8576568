import threading
threading.Timer(0.05, print, ["tick"]).start()
print("tock")
