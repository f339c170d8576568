exec(compile("def f():\n    raise KeyError('x')\nf()", "<made up>", "exec"))
