import tempfile, os
folder = tempfile.TemporaryDirectory()
print(os.path.isdir(folder.name))
