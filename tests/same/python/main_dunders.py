print(__doc__, __package__, __spec__, __annotations__ if "__annotations__" in globals() else "none")
