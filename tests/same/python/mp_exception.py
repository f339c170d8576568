import multiprocessing as mp
def work(): raise ValueError("in a process")
if __name__ == "__main__":
    p = mp.get_context("fork").Process(target=work, name="P")
    p.start(); p.join()
    print(p.exitcode)
