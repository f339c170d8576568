import os
os.closerange(3, 1024)
print("still speaks")
raise SystemExit(3)
