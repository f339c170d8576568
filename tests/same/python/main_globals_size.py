import sys

# Names that were there before and are gone would show in the size.
print(list(globals()), sys.getsizeof(globals()))
