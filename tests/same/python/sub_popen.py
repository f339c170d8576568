import os
with os.popen("echo hi; exit 2") as pipe:
    print(pipe.read())
