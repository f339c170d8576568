print("one")
print("two"
