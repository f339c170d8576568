# In __main__ a DeprecationWarning is shown.
import warnings
warnings.warn("old", DeprecationWarning)
