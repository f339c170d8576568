import os
import sys

print(f"Hello from Python {sys.version.split()[0]}, uid {os.getuid()}, in {os.getcwd()}.")
