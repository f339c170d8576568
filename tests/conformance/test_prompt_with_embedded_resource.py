# --- prompt
# description = "A resource and what to do with it"
# [parameters]
# resourceUri = "Address of the resource"
# ---
import hotcell

hotcell.resource(hotcell.arguments["resourceUri"], "Embedded resource content for testing.", "text/plain")
print("Please process the embedded resource above.")
