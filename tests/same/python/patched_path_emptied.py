import sys
sys.path.clear(); sys.meta_path.clear()
import csv
