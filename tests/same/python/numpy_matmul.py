# needs: "numpy"
import numpy as np
a = np.arange(250000, dtype=float).reshape(500, 500) % 7
print((a @ a).sum())
