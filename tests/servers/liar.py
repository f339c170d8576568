"""An MCP server for the tests that does not keep to the protocol."""
import json
import sys


def send(message):
    sys.stdout.write(message + "\n")
    sys.stdout.flush()


ANSWERS = {
    "number": '"result": 5',
    "nothing": '"result": null',
    "neither": '"other": 1',
    "words": '"result": {"content": "words", "isError": "yes"}',
    "parts": '"result": {"content": [7, {"type": "text"}, null]}',
    "refusal": '"error": 3',
    "both": '"error": {"code": 1, "message": ["no"]}, "result": {"content": []}',
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    identity = f'{{"jsonrpc": "2.0", "id": {message["id"]}, '
    for noise in ["", "5", "[]", '"x"', "null", "[[[", '{"id": 4711, "result": {}}', '{"id": {}, "result": 1}', '{"method": 7, "id": "q"}', '{"method": "steal", "id": [1]}']:
        send(noise)
    if message["method"] == "initialize":
        send(identity + '"result": []}')
    elif message["method"] == "tools/list":
        # One page after the other, without end.
        send(identity + '"result": {"tools": [1, null, {"name": 5}, {"name": "odd", "inputSchema": 7}], "nextCursor": "again"}}')
    elif message["method"] == "resources/list":
        # The same with parts that are no resources.
        send(identity + '"result": {"resources": [5, null], "nextCursor": "again"}}')
    elif message["method"] == "resources/read":
        send(identity + {"list": '"result": [1]', "text": '"result": "x"', "odd": '"result": {"contents": [3, {"text": 4}, {"blob": "%"}, {}]}'}[message["params"]["uri"]] + "}")
    elif message["method"] == "prompts/list":
        send(identity + '"result": [[]]}')
    else:
        kind = message["params"]["arguments"]["kind"]
        if kind == "endless":
            while True:
                sys.stdout.write("x" * (1 << 20))
        send(identity + ANSWERS[kind] + "}")
