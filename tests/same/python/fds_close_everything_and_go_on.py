import os
os.closerange(0, 1024)
x = 1 + 1
