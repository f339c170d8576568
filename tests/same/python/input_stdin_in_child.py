# stdin: "for the child\n"
import subprocess
subprocess.run(["cat"])
