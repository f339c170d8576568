import json
x = []
for _ in range(100000): x = [x]
try:
    json.dumps(x)
except RecursionError as error:
    print(type(error).__name__)
