# files: {"a.py": "from b import y\nx = 1\n", "b.py": "from a import x\ny = 1\n"}
import a
