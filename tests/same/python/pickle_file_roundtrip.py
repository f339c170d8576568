import pickle, subprocess, sys
class Mine: pass
pickle.dump(Mine(), open("x.pickle", "wb"))
r = subprocess.run([sys.executable, "-c", "import pickle; pickle.load(open('x.pickle','rb'))"], capture_output=True, text=True)
print(r.stderr.splitlines()[-1])
