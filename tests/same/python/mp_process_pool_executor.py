from concurrent.futures import ProcessPoolExecutor
def cube(x): return x ** 3
if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool:
        print(list(pool.map(cube, range(4))))
