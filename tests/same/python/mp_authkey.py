import multiprocessing as mp
print(len(mp.current_process().authkey), type(mp.current_process().authkey).__name__)
