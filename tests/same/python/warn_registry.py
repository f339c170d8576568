import warnings
print("__warningregistry__" in globals())
warnings.warn("x")
print("__warningregistry__" in globals())
