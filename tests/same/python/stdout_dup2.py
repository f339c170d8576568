import os
os.dup2(2, 1)
print("this goes to stderr")
