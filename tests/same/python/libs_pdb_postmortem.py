# stdin: "p x\nq\n"
import pdb
x = 41
pdb.set_trace()
print("after")
