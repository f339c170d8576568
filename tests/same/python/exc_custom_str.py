class Mine(Exception):
    def __str__(self): return "my own\nin two lines"
raise Mine
