# --- tool
# description = "Needs a client with a model"
# needs = ["sampling"]
# ---
print("The client can be asked.")
