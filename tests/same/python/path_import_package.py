# files: {"pkg/__init__.py": "from .inner import deep\n", "pkg/inner.py": "def deep():\n    return __name__, __package__\n"}
import pkg
print(pkg.deep(), pkg.__path__ == ["/workspace/pkg"])
