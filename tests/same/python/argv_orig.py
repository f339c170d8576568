# args: ["x"]
import sys
print([w if "/" not in w else "PATH/" + w.rsplit("/", 1)[1] for w in sys.orig_argv])
