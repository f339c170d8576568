open("f", "w").write("é")
print(open("f", "rb").read(), open("f").encoding)
