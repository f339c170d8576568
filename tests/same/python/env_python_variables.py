import os
print([n for n in os.environ if n.startswith("PYTHON")])
