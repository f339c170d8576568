import sys
calls = []
def tracer(frame, event, arg):
    calls.append((event, frame.f_code.co_name)); return None
sys.settrace(tracer)
def f(): pass
f()
sys.settrace(None)
print(calls)
