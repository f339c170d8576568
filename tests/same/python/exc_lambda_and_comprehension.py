f = lambda x: [1 / y for y in x]
f([1, 0])
