import sys
print("\n".join(sys.path))
