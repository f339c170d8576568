# stdin: "x\n"
import sys
sys.stderr.write("before\n")
print("got", input("prompt> "))
