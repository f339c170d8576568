def f():
    try:
        1 / 0
    except ZeroDivisionError as error:
        raise SystemExit("stopped") from error
f()
