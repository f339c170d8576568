import os, signal, sys
def handler(number, frame):
    print("got", signal.Signals(number).name, frame.f_code.co_name)
    sys.exit(7)
signal.signal(signal.SIGTERM, handler)
os.kill(os.getpid(), signal.SIGTERM)
