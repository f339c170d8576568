foobar = 1
fobar
