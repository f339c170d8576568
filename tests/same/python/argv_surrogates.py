# args: ["caf\u00e9", "\ud83d\ude00"]
import sys, os
print([os.fsencode(a) for a in sys.argv[1:]])
