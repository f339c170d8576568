# files: {"sitecustomize.py": "print('must not run')\n", "usercustomize.py": "print('nor this')\n"}
print("ran")
