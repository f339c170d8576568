import os
old = os.umask(0)
print(oct(old))
