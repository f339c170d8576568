# --- resource
# uri = "test://template/{id}/data"
# description = "Data for an id"
# mime = "application/json"
# complete.id = ["123", "456"]
# ---
import json

import hotcell

id = hotcell.arguments["id"]
print(json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"}), end="")
