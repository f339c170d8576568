import os
print("x", end="")
os._exit(17)
