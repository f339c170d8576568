import sys
print("before")
sys.modules.clear()
raise ValueError("with no modules")
