print("no end", end="")
