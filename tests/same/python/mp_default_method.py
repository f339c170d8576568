import multiprocessing as mp
print(mp.get_start_method(), mp.get_all_start_methods(), mp.current_process().name, mp.parent_process())
