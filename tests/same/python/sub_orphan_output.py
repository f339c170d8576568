# What a child prints after its parent has ended is lost in neither.
import subprocess
p = subprocess.Popen(["sh", "-c", "echo at once"])
p.wait()
print("waited")
