import shutil, os
print(os.environ["PATH"], shutil.which("sh"), shutil.which("no-such"))
