# --- tool
# description = "Asks for a confirmation, which comes back with the sealed state"
# ---
import hotcell

answer = hotcell.ask("confirm", "Please confirm", {"ok": {"type": "boolean"}})
print("state-ok" if answer and answer["ok"] else "not confirmed")
