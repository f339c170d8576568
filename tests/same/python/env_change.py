import os, subprocess
os.environ["MINE"] = "é value"
del os.environ["LANG"]
subprocess.run("echo $MINE; echo ${LANG-unset}", shell=True)
print(os.getenv("MINE"), os.environb[b"MINE"])
