# --- tool
# description = "Asks the client for its roots"
# ---
import hotcell

answer = hotcell.ask_all({"client_roots": {"method": "roots/list", "params": {}}})["client_roots"]
for root in answer["roots"]:
    print(root["uri"], root.get("name", ""))
