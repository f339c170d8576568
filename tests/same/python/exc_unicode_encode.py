"é".encode("ascii")
