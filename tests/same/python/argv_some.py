# args: ["one", "two words", "", "--flag=x", "-c", "ünï"]
import sys
for word in sys.argv:
    print(repr(word))
