# --- tool
# description = "Lets clients look at the tools again"
# ---
import hotcell

hotcell.changed("tools")
print("Told.")
