import contextlib, io
buffer = io.StringIO()
with contextlib.redirect_stdout(buffer):
    print("caught")
print(repr(buffer.getvalue()))
