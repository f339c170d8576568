import sys
sys.stderr.close()
raise ValueError("nobody hears it")
