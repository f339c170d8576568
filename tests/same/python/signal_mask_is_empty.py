import signal
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.sigpending())
# Those of the C library's own threads are not looked at.
for line in open("/proc/self/status"):
    if line.startswith(("SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd")):
        print(line.split()[0], hex(int(line.split()[1], 16) & 0x7FFFFFFF))
