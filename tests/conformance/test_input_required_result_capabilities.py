# --- tool
# description = "Asks only what the client can answer"
# ---
import hotcell

questions = {}
if "elicitation" in hotcell.client:
    questions["user_name"] = {"params": {
        "message": "What is your name?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    }}
if "sampling" in hotcell.client:
    hello = {"role": "user", "content": {"type": "text", "text": "Say hello"}}
    questions["greeting"] = {
        "method": "sampling/createMessage",
        "params": {"messages": [hello], "maxTokens": 50},
    }
answers = hotcell.ask_all(questions) if questions else {}
print("Answered:", ", ".join(answers) or "nothing could be asked")
