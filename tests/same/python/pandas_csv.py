# needs: "pandas"
# stdin: "x,y\n1,2\n3,4\n"
import pandas as pd, sys
print(pd.read_csv(sys.stdin).sum())
