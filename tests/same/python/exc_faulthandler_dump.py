import faulthandler, sys
def f():
    faulthandler.dump_traceback(sys.stdout, all_threads=False)
f()
