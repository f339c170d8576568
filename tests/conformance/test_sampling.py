# --- tool
# description = "Asks the client's model"
# needs = ["sampling"]
# [parameters]
# prompt = "What to ask"
# ---
import hotcell

question = {"role": "user", "content": {"type": "text", "text": hotcell.arguments["prompt"]}}
answer = hotcell.ask_all({
    "reply": {"method": "sampling/createMessage", "params": {"messages": [question], "maxTokens": 100}},
})["reply"]
print("LLM response:", answer["content"]["text"])
