x = eval("1\0")
