print(compile("1 != 2", "x", "eval", dont_inherit=True).co_flags & 0x400000)
