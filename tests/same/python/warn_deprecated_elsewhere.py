# files: {"lib.py": "import warnings\ndef f():\n    warnings.warn('hidden', DeprecationWarning)\n    warnings.warn('shown', UserWarning, stacklevel=2)\n"}
import lib
lib.f()
