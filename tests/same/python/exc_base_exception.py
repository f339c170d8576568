class Mine(BaseException): pass
raise Mine("base")
