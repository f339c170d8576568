import random
random.seed(42)
print([random.randrange(100) for _ in range(10)], random.Random(1).random())
