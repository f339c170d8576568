import os
try:
    os.open("/dev/tty", os.O_RDWR)
except OSError as error:
    print(error.errno in (2, 6), os.isatty(0))
print(os.get_terminal_size.__name__, __import__("shutil").get_terminal_size())
