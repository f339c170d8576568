import subprocess, sys
seen = {subprocess.check_output([sys.executable, "-c", "print(hash('x'))"]) for _ in range(3)}
print(len(seen) > 1)
