"""An MCP server over stdio for the tests with a slice of the tools of a file: `many.py FILE FIRST COUNT`.

A call gives back its tool and its arguments. The file $MANY_MORE is watched: when it exists, the server has the tool `brand_new_gadget` too."""
import json
import os
import sys
import threading
import time

lock = threading.Lock()
kinds = {"any": {}}


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def tools():
    lines = open(sys.argv[1], encoding="utf-8").read().splitlines()
    first, count = int(sys.argv[2]), int(sys.argv[3])
    made = []
    for at in range(first, first + count):
        of, again = json.loads(lines[at % len(lines)]), at // len(lines)
        made.append({
            "name": of["name"] + (f"_{again}" if again else ""),
            "description": of["description"],
            "inputSchema": {
                "type": "object",
                "properties": {name.rstrip("?"): kinds.get(kind, {"type": kind}) for name, kind in of["parameters"].items()},
                "required": [name for name in of["parameters"] if not name.endswith("?")],
            },
        })
    if os.path.exists(os.environ.get("MANY_MORE", "")):
        made.append({"name": "brand_new_gadget", "description": "Makes a gadget", "inputSchema": {"type": "object"}})
    return made


def watch():
    while not os.path.exists(os.environ["MANY_MORE"]):
        time.sleep(0.05)
    send({"method": "notifications/tools/list_changed"})


for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if "id" not in message:
        continue
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "many", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": tools()}
        if os.environ.get("MANY_MORE"):
            threading.Thread(target=watch, daemon=True).start()
    else:
        said = json.dumps({"tool": params["name"], "arguments": params["arguments"]})
        result = {"content": [{"type": "text", "text": said}], "isError": params["name"] == "fail", "_meta": {"theirs": 1}}
    send({"id": message["id"], "result": result})
