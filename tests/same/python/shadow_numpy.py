# files: {"numpy.py": "mine = 1\n"}
import numpy
print(numpy.mine, numpy.__file__)
