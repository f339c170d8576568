import multiprocessing as mp
if __name__ == "__main__":
    with mp.Manager() as manager:
        d = manager.dict()
        d["a"] = 1
        print(dict(d))
