import sys
try:
    sys.exit(3)
except SystemExit as error:
    print("caught", error.code)
