import sys
c = sys._getframe().f_code
print(c.co_name, c.co_filename, c.co_firstlineno, c.co_flags, c.co_argcount, getattr(c, "co_qualname", ""))
