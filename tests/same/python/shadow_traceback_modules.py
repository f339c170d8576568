# files: {"traceback.py": "print('imported')\n", "linecache.py": "print('imported')\n", "tokenize.py": "print('imported')\n"}
raise ValueError("printed without the program's modules")
