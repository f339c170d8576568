# needs: "pandas"
import pandas as pd
print(pd.DataFrame({"a": [1, 2, 3], "b": list("xyz")}).groupby("b").sum().describe())
