# What a fresh __main__ holds, and nothing else.
print(sorted(globals()))
