# --- tool
# description = "Lets clients look at the prompts again"
# ---
import hotcell

hotcell.changed("prompts")
print("Told.")
