import multiprocessing as mp, sys, os, signal
def leave(): sys.exit(7)
def die(): os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    for target in (leave, die):
        p = mp.get_context("fork").Process(target=target)
        p.start(); p.join()
        print(p.exitcode)
