"""An MCP server over stdio for the tests, with nothing but Python's own library. Calls overlap.

It notes in the file $CLOCK_LOG what it was asked, so that a test sees it from outside."""
import json
import os
import sys
import threading
import time

TOOLS = [
    {"name": "wait", "description": "Waits. Then it says so.\nNothing else.",
     "inputSchema": {"type": "object", "properties": {"note": {"type": "string"}, "seconds": {"type": "number"}}, "required": ["seconds"]}},
    {"name": "echo-back", "description": "Gives back what it got",
     "inputSchema": {"type": "object", "properties": {"value": {}}}},
    {"name": "fail", "description": "Fails", "inputSchema": {"type": "object"}},
    {"name": "text", "description": "Says its text", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
    {"name": "picture", "description": "Shows a picture", "inputSchema": {"type": "object"}},
    {"name": "large", "description": "Says much", "inputSchema": {"type": "object", "properties": {"bytes": {"type": "integer"}}}},
    {"name": "environment", "description": "Says its environment", "inputSchema": {"type": "object"}},
    {"name": "die", "description": "Ends the server", "inputSchema": {"type": "object"}},
    {"name": "meet", "description": "Answers when as many as that wait for each other",
     "inputSchema": {"type": "object", "properties": {"count": {"type": "integer"}, "note": {"type": "string"}}, "required": ["count"]}},
]
lock = threading.Lock()
meetings = {}


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def note(line):
    if os.environ.get("CLOCK_LOG"):
        with lock, open(os.environ["CLOCK_LOG"], "a") as log:
            log.write(line + "\n")


def text(said, **more):
    return {"content": [{"type": "text", "text": said}], **more}


def call(name, arguments):
    note(f"call {name} {json.dumps(arguments)}")
    if name == "wait":
        time.sleep(arguments["seconds"])
        return text("done", structuredContent={"waited": arguments["seconds"], "note": arguments.get("note")})
    if name == "meet":
        with lock:
            meeting = meetings.setdefault(arguments["count"], threading.Barrier(arguments["count"]))
        meeting.wait()
        return text("met", structuredContent={"note": arguments.get("note")})
    if name == "echo-back":
        return text("echo", structuredContent={"value": arguments.get("value")})
    if name == "fail":
        return text(f"it broke; the key is {os.environ.get('CLOCK_KEY')}", isError=True)
    if name == "text":
        return text(arguments["text"])
    if name == "picture":
        return {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}, {"type": "text", "text": "seen"}]}
    if name == "large":
        return text("x" * arguments["bytes"])
    if name == "environment":
        return text(json.dumps(dict(os.environ)))
    os._exit(3)


def answer(message):
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "clock", "version": "1"}}
    elif method == "tools/list":
        # Two pages.
        at = int(params.get("cursor", 0))
        result = {"tools": TOOLS[at:at + 5], **({"nextCursor": "5"} if at == 0 else {})}
    elif method == "tools/call":
        result = call(params["name"], params["arguments"])
    else:
        send({"id": message["id"], "error": {"code": -32601, "message": "unknown"}})
        return
    send({"id": message["id"], "result": result})


print("clock: this is no message", flush=True)
print("clock started", file=sys.stderr, flush=True)
note(f"start {os.getpid()}")
send({"id": "theirs", "method": "ping"})
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "notifications/cancelled":
        note("cancelled")
    elif "id" in message and "method" in message:
        threading.Thread(target=answer, args=(message,), daemon=True).start()
    elif message.get("id") == "theirs":
        note("pong")
note("end")
