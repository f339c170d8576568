import sys
try:
    raise ValueError("lost")
finally:
    sys.exit(6)
