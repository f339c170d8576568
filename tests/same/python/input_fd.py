# stdin: "raw bytes"
import os
print(os.read(0, 3), os.read(0, 100), os.read(0, 100))
