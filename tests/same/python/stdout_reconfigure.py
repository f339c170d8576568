import sys
sys.stdout.reconfigure(encoding="ascii", errors="backslashreplace")
print("é 🐈")
sys.stdout.reconfigure(errors="strict")
print("é")
