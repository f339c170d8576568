# files: {"__main__.py": "print('not this one')\n", "main/__init__.py": "print('nor this')\n"}
print(__file__, __name__)
