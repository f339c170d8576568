# Nothing that this program did not load.
names = {line.split()[-1].rsplit("/", 1)[-1] for line in open("/proc/self/maps") if "/" in line}
print(sorted(n for n in names if n.startswith(("python", "libc.", "ld-"))))
