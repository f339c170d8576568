import faulthandler, ctypes
faulthandler.enable()
def crash():
    ctypes.string_at(0)
crash()
