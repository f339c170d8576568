import os
os.closerange(0, 1024)
os._exit(5)
