import os, stat, sys
print([stat.S_ISFIFO(os.fstat(n).st_mode) for n in (1, 2)], sys.stdout.isatty(), sys.stderr.isatty())
