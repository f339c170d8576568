"""Doc first."""
from __future__ import division, print_function
import __future__
print(1 / 2, division is __future__.division, __doc__)
