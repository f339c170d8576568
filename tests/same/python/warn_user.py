import warnings
warnings.warn("careful")
warnings.warn("careful")
print("done")
