import os
print(os.getcwd(), os.listdir(".") == os.listdir("/workspace"), os.access(".", os.W_OK))
