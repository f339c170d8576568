import builtins, sys
names = sorted(n for n in dir(builtins))
print(names)
print(builtins.print.__module__, builtins.input.__module__, builtins.open.__module__, builtins.__import__.__module__)
