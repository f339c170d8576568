import sys
print("\udcff", file=sys.stderr)
print("\udcff")
