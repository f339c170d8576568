import sys
sys.stderr = None
raise ValueError("nobody hears it")
