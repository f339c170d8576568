import multiprocessing as mp
def add(v):
    with v.get_lock(): v.value += 5
if __name__ == "__main__":
    v = mp.Value("i", 1)
    ps = [mp.Process(target=add, args=(v,)) for _ in range(3)]
    [p.start() for p in ps]; [p.join() for p in ps]
    print(v.value)
