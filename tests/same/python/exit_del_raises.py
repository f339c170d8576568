class Thing:
    def __del__(self):
        raise ValueError("in __del__")
thing = Thing()
del thing
print("goes on")
