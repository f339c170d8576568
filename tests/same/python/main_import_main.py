import __main__
x = 41
print(__main__.x + 1, __main__ is __import__("sys").modules["__main__"])
