import signal
for s in sorted(signal.Signals):
    h = signal.getsignal(s)
    print(s.name, h if not callable(h) else h.__name__)
