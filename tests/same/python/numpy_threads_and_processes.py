# needs: "numpy"
import numpy as np, multiprocessing as mp
def f(n): return float((np.ones((50, 50)) @ np.ones((50, 50))).sum() * n)
if __name__ == "__main__":
    with mp.get_context("fork").Pool(2) as pool: print(pool.map(f, [1, 2]))
