# A package that is shadowed brings none of its submodules along.
# files: {"json.py": "mine = 1\n", "concurrent/__init__.py": "mine = 2\n"}
import json, concurrent
print(json.mine, concurrent.mine, hasattr(json, "decoder"))
import json.decoder
