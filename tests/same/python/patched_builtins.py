import builtins
builtins.exec = builtins.compile = builtins.getattr = builtins.len = builtins.isinstance = builtins.open = None
raise ValueError("the interpreter needs none of them")
