def outer():
    inner()
def inner():
    raise ValueError("deep")
outer()
