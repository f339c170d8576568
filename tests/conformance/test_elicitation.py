# --- tool
# description = "Asks the user for a name and an address"
# needs = ["elicitation"]
# [parameters]
# message = "What to say to the user"
# ---
import json

import hotcell

schema = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}
params = {"message": hotcell.arguments["message"], "requestedSchema": schema}
answer = hotcell.ask_all({"user": {"params": params}})["user"]
print(f"User response: action={answer['action']}, content={json.dumps(answer.get('content'))}")
