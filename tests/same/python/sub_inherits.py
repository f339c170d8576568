import subprocess
print("parent")
subprocess.run("echo child; echo error >&2", shell=True)
print("parent again")
