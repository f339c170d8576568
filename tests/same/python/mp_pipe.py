import multiprocessing as mp
def child(c): c.send({"a": [1, 2]}); c.close()
if __name__ == "__main__":
    a, b = mp.Pipe()
    p = mp.Process(target=child, args=(b,))
    p.start(); print(a.recv()); p.join()
