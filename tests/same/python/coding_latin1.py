# -*- coding: latin-1 -*-
# The bytes of this é are two characters of latin-1.
print(len("é"), ascii("é"))
