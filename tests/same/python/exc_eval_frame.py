eval("1 +\n undefined_thing")
