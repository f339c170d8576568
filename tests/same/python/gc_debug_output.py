import gc
gc.set_debug(gc.DEBUG_UNCOLLECTABLE)
print(gc.garbage)
