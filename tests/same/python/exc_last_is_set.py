import sys
print(hasattr(sys, "last_type"), hasattr(sys, "last_traceback"))
