# --- tool
# description = "Asks three things at once"
# ---
import hotcell

name = {
    "message": "What is your name?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}
greeting = {"role": "user", "content": {"type": "text", "text": "Generate a greeting"}}
answers = hotcell.ask_all({
    "user_name": {"method": "elicitation/create", "params": name},
    "greeting": {"method": "sampling/createMessage", "params": {"messages": [greeting], "maxTokens": 50}},
    "client_roots": {"method": "roots/list", "params": {}},
})
print(answers["greeting"]["content"]["text"], answers["user_name"].get("content"))
print(len(answers["client_roots"]["roots"]), "roots")
