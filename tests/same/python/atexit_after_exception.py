import atexit
atexit.register(print, "still called")
raise RuntimeError("end")
