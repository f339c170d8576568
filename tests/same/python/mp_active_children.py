import multiprocessing as mp
print(mp.active_children())
