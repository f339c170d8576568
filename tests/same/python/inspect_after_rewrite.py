open(__file__, "a").write("print('not seen')\n")
print("one")
