import os
print(__file__, os.path.isabs(__file__), os.path.exists(__file__))
