import os, stat
open("f", "w").close(); os.mkdir("d")
print(oct(os.stat("f").st_mode), oct(os.stat("d").st_mode), oct(os.stat("main.py").st_mode & 0o444))
