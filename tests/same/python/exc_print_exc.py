import traceback, sys
def f():
    raise ValueError("shown")
try:
    f()
except ValueError:
    traceback.print_exc(file=sys.stdout)
    print(len(traceback.extract_tb(sys.exc_info()[2])))
