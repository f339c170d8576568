# files: {"beside.py": "x = 1\n"}
import beside, os
print(sorted(os.listdir("/workspace")), sorted(n.split(".")[0] for n in os.listdir("/workspace/__pycache__")))
