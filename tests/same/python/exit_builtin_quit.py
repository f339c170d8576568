print("a")
quit()
print("b")
