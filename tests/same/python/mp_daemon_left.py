import multiprocessing as mp, time
if __name__ == "__main__":
    mp.Process(target=time.sleep, args=(30,), daemon=True).start()
    print("it is ended with main")
