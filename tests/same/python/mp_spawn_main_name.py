# In a spawned child the program is imported under another name.
import multiprocessing as mp, sys
if __name__ != "__main__":
    print("imported as", __name__, __file__, flush=True)
def work(): print("worker", __name__, sys.argv[0].rsplit("/", 1)[-1])
if __name__ == "__main__":
    p = mp.get_context("spawn").Process(target=work)
    p.start(); p.join()
    print(p.exitcode)
