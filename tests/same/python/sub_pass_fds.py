import os, subprocess, sys
r, w = os.pipe()
os.set_inheritable(w, True)
subprocess.run([sys.executable, "-c", f"import os; os.write({w}, b'through')"], pass_fds=[w])
print(os.read(r, 10))
