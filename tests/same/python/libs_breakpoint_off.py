# stdin: "c\n"
def f():
    breakpoint()
    return 1
print(f())
