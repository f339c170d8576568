# The same, by an object that has seen many others come and stay.
import os


class Holder:
    pass


holder = Holder()
holder.self = holder
holder.file = open(os.dup(1), "w")
holder.file.write("kept until the end\n")
many = [[] for _ in range(100_000)]
print("last line")
