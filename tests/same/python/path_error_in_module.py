# files: {"broken.py": "def f():\n    return 1 / 0\nf()\n"}
import broken
