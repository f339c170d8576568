"""How a published script sends messages to hotcell. See `hotcell help publish`."""

import base64
import json
import os
import sys

_mark = os.environ.get("HOTCELL_TALK", "")


def _load(name):
    with open(os.path.join("/workspace", name), encoding="utf-8") as file:
        return json.load(file)


arguments = _load("arguments.json")
client = json.loads(os.environ.get("HOTCELL_CLIENT", "{}"))
uri = os.environ.get("HOTCELL_URI")


def say(**message):
    """Sends one message to hotcell."""
    sys.stdout.write(_mark + json.dumps(message) + "\n")
    sys.stdout.flush()


def text(text, **more):
    say(type="text", text=text, **more)


def image(data, mime="image/png", **more):
    say(type="image", data=base64.b64encode(data).decode(), mimeType=mime, **more)


def audio(data, mime="audio/wav", **more):
    say(type="audio", data=base64.b64encode(data).decode(), mimeType=mime, **more)


def resource(uri, content, mime=None, **more):
    inner = {"uri": uri}
    if mime:
        inner["mimeType"] = mime
    if isinstance(content, bytes):
        inner["blob"] = base64.b64encode(content).decode()
    else:
        inner["text"] = content
    say(type="resource", resource=inner, **more)


def link(uri, name, **more):
    say(type="resource_link", uri=uri, name=name, **more)


def structured(content):
    say(type="structured", content=content)


def progress(done, total=None, message=None):
    report = {"progress": done, "total": total, "message": message}
    say(type="progress", **{key: value for key, value in report.items() if value is not None})


def log(data, level="info"):
    say(type="log", level=level, data=data)


def changed(what):
    """Tells clients to look again: "tools", "prompts", "resources", or one address."""
    say(type="changed", what=what)


def answer(function):
    """Calls a function with the arguments and returns what it returns. What it prints goes to standard error."""
    import asyncio
    import contextlib
    import inspect

    if "HOTCELL_TRIAL" in os.environ:
        return

    async def wait(value):
        return await value

    with contextlib.redirect_stdout(sys.stderr):
        value = function(**arguments)
        if inspect.isawaitable(value):
            value = asyncio.run(wait(value))
    value = json.loads(json.dumps(value, default=lambda it: list(it) if isinstance(it, (set, frozenset)) else str(it)))
    text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    structured({"result": value})


def ask_all(questions):
    """Asks the client; {key: {"method": ..., "params": ...}} comes back as {key: result}.

    While an answer is missing this does not return: the script ends here and is
    started anew when the answers are there."""
    say(type="ask", questions=questions)
    answers = _load("answers.json")
    if any(key not in answers for key in questions):
        os._exit(0)
    return {key: answers[key] for key in questions}


def ask(key, message, properties, required=None):
    """Shows the user a form; returns its content, or None if it was not accepted.

    `properties` are the fields as JSON Schema; all are required unless you say which."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
    }
    question = {"params": {"message": message, "requestedSchema": schema}}
    answer = ask_all({key: question})[key]
    return answer.get("content") if answer["action"] == "accept" else None
