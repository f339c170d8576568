# files: {"old.py": {"base64": "IyBjb2Rpbmc6IGxhdGluLTEKd29yZCA9ICJjYWbpIgo="}}
import old
print(old.word, len(old.word))
