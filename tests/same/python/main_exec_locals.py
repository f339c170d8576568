# At module level locals are globals.
print(locals() is globals())
exec("y = 5")
print(y)
