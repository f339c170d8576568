"""An MCP server over stdio for the tests, with all that a tool can give: pictures, sounds, files, links, resources, prompts."""
import base64
import json
import sys
import threading
import time

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
OBJECT = {"type": "object"}
TOOLS = [
    {"name": "draw", "description": "Draws a picture", "inputSchema": OBJECT},
    {"name": "all-kinds", "description": "Gives a part of each kind", "inputSchema": OBJECT},
    {"name": "add", "description": "Adds two numbers.\n\nThe second is 1 if it is left out.",
     "inputSchema": {"type": "object", "properties": {"second": {"type": "integer", "default": 1}, "first": {"type": "integer"}}, "required": ["first"]},
     "outputSchema": {"type": "object", "properties": {"sum": {"type": "integer"}}}},
    {"name": "say", "description": "Says a text", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}},
    {"name": "sleep", "description": "Takes its time", "inputSchema": {"type": "object", "properties": {"seconds": {"type": "number"}}}},
    {"name": "refuse", "description": "Says why not", "inputSchema": OBJECT},
    {"name": "from", "description": "Has a keyword for its name", "inputSchema": OBJECT},
    {"name": "fill", "description": "Gives much", "inputSchema": {"type": "object", "properties": {"bytes": {"type": "integer"}}}},
]
lock = threading.Lock()


def encoded(data):
    return base64.b64encode(data).decode()


def text(said, **more):
    return {"content": [{"type": "text", "text": said}], **more}


def call(name, given):
    if name == "draw":
        return {"content": [{"type": "image", "data": encoded(PNG), "mimeType": "image/png"}]}
    if name == "all-kinds":
        return {"content": [
            {"type": "text", "text": "first"},
            {"type": "image", "data": encoded(PNG), "mimeType": "image/png"},
            {"type": "audio", "data": encoded(b"RIFF"), "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "studio://note", "mimeType": "text/plain", "text": "a note"}},
            {"type": "resource", "resource": {"uri": "studio://blob", "mimeType": "application/x-thing", "blob": encoded(b"\0\1\2")}},
            {"type": "resource_link", "uri": "studio://large", "name": "large", "mimeType": "text/plain"},
        ]}
    if name == "add":
        return text("ignored", structuredContent={"sum": given["first"] + given.get("second", 1)})
    if name == "say":
        return text(given["text"])
    if name == "sleep":
        time.sleep(given["seconds"])
        return text("slept")
    if name == "refuse":
        return text("no paper", isError=True, structuredContent={"code": 7})
    if name == "from":
        return text("here")
    return text("x" * given["bytes"])


def read(uri):
    if uri == "studio://blob":
        return {"contents": [{"uri": uri, "mimeType": "application/x-thing", "blob": encoded(b"\0\1\2")}]}
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": f"what is at {uri}"}]}


def result(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
                "serverInfo": {"name": "studio", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call(params["name"], params["arguments"])
    if method == "resources/list":
        # Two pages.
        return {"resources": [{"uri": "studio://two", "name": "two"}]} if "cursor" in params else {
            "resources": [{"uri": "studio://one", "name": "one"}], "nextCursor": "more"}
    if method == "resources/read":
        return read(params["uri"])
    if method == "prompts/list":
        return {"prompts": [{"name": "greet"}]}
    return {"messages": [{"role": "user", "content": {"type": "text", "text": f"Greet {params['arguments'].get('who')}"}}]}


def answer(message):
    said = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result(message["method"], message.get("params", {}))})
    with lock:
        print(said, flush=True)


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        threading.Thread(target=answer, args=(message,), daemon=True).start()
