import os
print([os.get_inheritable(n) for n in (0, 1, 2)], [os.get_blocking(n) for n in (0, 1, 2)])
