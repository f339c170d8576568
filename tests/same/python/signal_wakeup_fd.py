import signal
print(signal.set_wakeup_fd(-1))
