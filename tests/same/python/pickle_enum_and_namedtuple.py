import pickle, enum, collections
class Colour(enum.Enum): RED = 1
P = collections.namedtuple("P", "x y")
print(pickle.loads(pickle.dumps([Colour.RED, P(1, 2)])), P.__module__)
