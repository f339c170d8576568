# --- tool
# description = "Logs three lines while it works"
# ---
import time

import hotcell

hotcell.log("Tool execution started")
time.sleep(0.05)
hotcell.log("Tool processing data")
time.sleep(0.05)
hotcell.log("Tool execution completed")
print("Logged three lines.")
