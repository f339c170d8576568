import sys
print("said")
sys.stdout.close()
try:
    print("x")
except ValueError as error:
    sys.stderr.write(f"{error}\n")
