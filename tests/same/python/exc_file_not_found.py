open("no/such/file")
