# A file in a cycle is written out when the cycle is collected, at the very end.
import os


class Holder:
    pass


holder = Holder()
holder.self = holder
holder.file = open(os.dup(1), "w")
holder.file.write("kept until the end\n")
print("last line")
