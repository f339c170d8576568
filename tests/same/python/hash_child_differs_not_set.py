import os
print(os.environ.get("PYTHONHASHSEED"))
