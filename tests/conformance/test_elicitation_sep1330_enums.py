# --- tool
# description = "Asks with every way to offer a choice"
# needs = ["elicitation"]
# ---
import json

import hotcell


def titled(prefix, *names):
    return [{"const": f"value{at}", "title": f"{name} {prefix}"} for at, name in enumerate(names, 1)]


options = ["option1", "option2", "option3"]
schema = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled("Option", "First", "Second", "Third")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice", "First", "Second", "Third")}},
    },
    "required": [],
}
params = {"message": "Please choose", "requestedSchema": schema}
answer = hotcell.ask_all({"choices": {"params": params}})["choices"]
print(f"Elicitation completed: action={answer['action']}, content={json.dumps(answer.get('content'))}")
