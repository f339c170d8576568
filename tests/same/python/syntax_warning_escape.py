print("\d", "\w")
