# files: {"bad.py": {"base64": "d29yZCA9ICJjYWbpIgo="}}
import bad
