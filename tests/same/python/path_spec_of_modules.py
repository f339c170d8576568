import json, sys, importlib.util
print(importlib.util.find_spec("csv").origin.rsplit("/", 1)[1])
print(json.__spec__.name, json.__spec__.has_location)
