# A child inherits nothing but the three.
import subprocess, sys
subprocess.run([sys.executable, "-c", "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')))"])
