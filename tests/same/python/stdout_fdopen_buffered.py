import os
out = os.fdopen(1, "w", buffering=4096, closefd=False)
out.write("flushed at exit")
