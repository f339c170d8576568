import subprocess, sys
out = subprocess.run([sys.executable, "-c", "import sys; print(sys.argv, __name__); sys.exit(3)", "x"], capture_output=True, text=True)
print(out.returncode, out.stdout, out.stderr)
