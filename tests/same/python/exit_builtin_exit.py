exit(5)
