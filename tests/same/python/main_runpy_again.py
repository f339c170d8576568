# files: {"other.py": "import sys\nprint(__name__, __file__, sys.argv)\n"}
import runpy
runpy.run_path("other.py", run_name="__main__")
m = runpy.run_module("other", run_name="renamed")
print(m["__name__"])
