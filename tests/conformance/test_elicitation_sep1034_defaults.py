# --- tool
# description = "Asks with a default for every type"
# needs = ["elicitation"]
# ---
import json

import hotcell

schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "required": [],
}
params = {"message": "Please check these values", "requestedSchema": schema}
answer = hotcell.ask_all({"values": {"params": params}})["values"]
print(f"Elicitation completed: action={answer['action']}, content={json.dumps(answer.get('content'))}")
