import os
print(os.environ.get("PWD"), os.environ.get("OLDPWD"), os.environ.get("SHLVL"))
