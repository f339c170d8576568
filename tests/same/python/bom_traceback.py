# Comment first.
import sys
print(sys.argv, __doc__)
raise ValueError("line four")
