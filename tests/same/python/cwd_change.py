import os, sys
os.mkdir("sub"); os.chdir("sub")
print(os.getcwd(), __file__, sys.path[0])
raise ValueError("the traceback finds its lines from elsewhere")
