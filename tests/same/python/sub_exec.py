import os, sys
print("before exec")
os.execv(sys.executable, [sys.executable, "-c", "print('after exec'); raise SystemExit(4)"])
