import copy
class Node:
    def __init__(self): self.me = self
n = copy.deepcopy(Node())
print(n.me is n, type(n).__module__)
