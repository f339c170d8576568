# Two errors of one kind: neither is at the top level of an async function.
def f():
    await g()
