import subprocess, sys
subprocess.run([sys.executable, "-c", "import os; print(len(os.listdir('/proc/self/fd')))"], close_fds=False)
