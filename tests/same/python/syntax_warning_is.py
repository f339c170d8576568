x = 5
print(x is 5)
