# args: ["a", "b c"]
print(open("/proc/self/cmdline", "rb").read().split(b"\0")[1:])
