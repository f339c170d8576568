# files: {"beside.py": "value = 'beside ' + __name__\nprint(__file__)\n"}
import beside
print(beside.value)
