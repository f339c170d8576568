open("/tmp", "w")
