import sys
length = 3
print(lenght)
