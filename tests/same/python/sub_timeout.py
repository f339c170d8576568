import subprocess
try:
    subprocess.run(["sleep", "20"], timeout=0.2)
except subprocess.TimeoutExpired as error:
    print(error.cmd, round(error.timeout, 1), error.output)
