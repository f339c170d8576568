import sys
sys.exit = sys.stdout.flush = sys.excepthook = None
raise ValueError("with no hook")
