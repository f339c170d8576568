try:
    raise ExceptionGroup("several", [ValueError(1), ExceptionGroup("in", [KeyError("k")])])
except NameError:
    raise SystemExit("no groups")
