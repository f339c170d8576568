import pickle
def f(x): return x + 1
data = pickle.dumps(f, 0)
print(data, pickle.loads(data)(1))
