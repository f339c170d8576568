import multiprocessing as mp
def bad(x): raise KeyError(x)
if __name__ == "__main__":
    with mp.get_context("fork").Pool(1) as pool:
        try:
            pool.map(bad, [1])
        except KeyError as error:
            print("raised here:", error)
