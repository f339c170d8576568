import sys, threading
print(sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__)
print(sys.unraisablehook is sys.__unraisablehook__, threading.excepthook.__name__)
print(sys.gettrace(), sys.getprofile(), sys.getswitchinterval())
