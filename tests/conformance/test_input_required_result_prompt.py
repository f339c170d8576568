# --- prompt
# description = "A message with something in it that the user is asked for"
# ---
import hotcell

answer = hotcell.ask("user_context", "What context should the prompt use?", {"context": {"type": "string"}})
print("Use this context:", answer["context"] if answer else "none")
