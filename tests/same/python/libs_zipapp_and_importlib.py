import zipfile, sys
with zipfile.ZipFile("lib.zip", "w") as z: z.writestr("zipped.py", "print('from', __file__)")
sys.path.insert(0, "lib.zip")
import zipped
