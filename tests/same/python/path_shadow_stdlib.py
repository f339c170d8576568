# files: {"colorsys.py": "print('shadowed')\n"}
import colorsys
print(colorsys.__file__)
