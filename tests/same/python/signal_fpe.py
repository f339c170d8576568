import os, signal
signal.raise_signal(signal.SIGFPE)
