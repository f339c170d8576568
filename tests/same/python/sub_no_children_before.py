import os
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError as error:
    print(error)
