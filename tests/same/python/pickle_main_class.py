import pickle
class Point:
    def __init__(self, x, y): self.x, self.y = x, y
p = pickle.loads(pickle.dumps(Point(1, 2)))
print(type(p) is Point, p.x, p.y, Point.__module__)
