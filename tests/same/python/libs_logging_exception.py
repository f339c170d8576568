import logging
logging.basicConfig(format="%(levelname)s %(funcName)s %(filename)s:%(lineno)d %(message)s %(processName)s %(threadName)s")
def f():
    try: 1 / 0
    except ZeroDivisionError: logging.exception("caught")
f()
