# files: {"threading.py": "print('imported')\n", "atexit.py": "print('imported')\n", "signal.py": "print('imported')\n"}
print("nothing of these is needed to end")
