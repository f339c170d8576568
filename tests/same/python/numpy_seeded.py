# needs: "numpy"
import numpy as np
np.random.seed(1)
print(np.random.randint(0, 100, 5), np.random.default_rng(7).integers(0, 100, 5))
