print(repr(input("anything? ")))
