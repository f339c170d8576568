import os
os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
os.getcwd()
