# files: {"lib/late.py": "print('late', __name__)\n"}
import sys
sys.path.append("lib")
import late
