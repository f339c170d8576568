try:
    compile("a b", "some file", "exec")
except SyntaxError as error:
    print(error.filename, error.lineno, error.offset, error.text, error.msg)
