# stdin: "first\nlast"
print(repr(input()), repr(input()))
try:
    input()
except EOFError as error:
    print("EOF", error)
