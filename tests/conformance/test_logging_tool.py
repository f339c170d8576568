# --- tool
# description = "Logs a line; who has not asked for lines gets none"
# ---
import hotcell

hotcell.log("A line for whoever listens")
print("Logged a line.")
