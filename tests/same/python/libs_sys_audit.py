import sys
seen = []
sys.addaudithook(lambda name, args: seen.append(name) if name == "mine" else None)
sys.audit("mine", 1)
print(seen)
