import threading
names = []
for _ in range(3):
    t = threading.Thread(target=lambda: names.append(threading.current_thread().name))
    t.start()
    t.join()
print(names)
