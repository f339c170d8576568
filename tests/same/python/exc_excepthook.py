import sys
def hook(kind, value, trace):
    print("hook:", kind.__name__, value, trace.tb_lineno, trace.tb_next)
sys.excepthook = hook
raise ValueError("mine")
