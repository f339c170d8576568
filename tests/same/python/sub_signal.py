import subprocess
print(subprocess.run(["sh", "-c", "kill -TERM $$"]).returncode)
