# --- tool
# description = "Asks for a name and greets"
# ---
import hotcell

answer = hotcell.ask("user_name", "What is your name?", {"name": {"type": "string"}})
print(f"Hello, {answer['name']}!" if answer else "Hello, whoever you are!")
