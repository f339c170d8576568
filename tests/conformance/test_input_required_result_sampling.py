# --- tool
# description = "Asks the client's model for a capital"
# ---
import hotcell

question = {"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}}
answer = hotcell.ask_all({
    "capital_question": {
        "method": "sampling/createMessage",
        "params": {"messages": [question], "maxTokens": 100},
    },
})["capital_question"]
print("The model says:", answer["content"]["text"])
