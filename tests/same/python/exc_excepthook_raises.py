import sys
def hook(kind, value, trace):
    raise KeyError("the hook fails too")
sys.excepthook = hook
raise ValueError("first")
