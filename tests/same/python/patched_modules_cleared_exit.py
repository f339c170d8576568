import sys
exit_ = sys.exit
sys.modules.clear()
exit_(5)
