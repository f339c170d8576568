import tempfile
a, b = tempfile.mktemp(), tempfile.mktemp()
print(a != b, tempfile.gettempdir(), len(a))
