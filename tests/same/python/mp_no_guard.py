import multiprocessing as mp
mp.set_start_method("fork")
def work(q): q.put("from the child")
q = mp.Queue()
p = mp.Process(target=work, args=(q,))
p.start()
print(q.get())
p.join()
