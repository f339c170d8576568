# needs: "numpy"
import numpy as np
print(np.arange(6).reshape(2, 3).sum(axis=0), np.linalg.inv(np.eye(2) * 2))
