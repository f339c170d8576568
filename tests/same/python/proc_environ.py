print(sorted(open("/proc/self/environ", "rb").read().rstrip(b"\0").split(b"\0")))
