"""The docstring of main."""
print(__doc__)
print(__builtins__.__name__)
