# The source is what ran, even when the file is gone.
import os, traceback
os.remove(__file__)
def f(): raise ValueError("file is gone")
f()
