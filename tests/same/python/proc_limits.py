print([line.split() for line in open("/proc/self/limits") if line.startswith("Max open files")])
