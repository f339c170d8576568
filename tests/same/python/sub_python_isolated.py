import subprocess, sys
print(subprocess.check_output([sys.executable, "-I", "-c", "import sys; print(sys.flags.isolated, sys.path[0] != '/workspace')"], text=True))
