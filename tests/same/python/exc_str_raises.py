class Mine(Exception):
    def __str__(self): raise ValueError("no")
raise Mine
