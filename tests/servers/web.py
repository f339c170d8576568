"""An MCP server over HTTP for the tests: streamable HTTP at /mcp, the older HTTP+SSE at /sse, and /guarded, which wants
a login at an authorization server that is here too.

Started with a file that it writes its port to, and one that it logs to. Whoever does not send the token $WEB_TOKEN is refused."""
import base64
import hashlib
import json
import os
import queue
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

PORT_FILE, LOG_FILE = sys.argv[1:]
TOKEN = os.environ.get("WEB_TOKEN")
TOOLS = [
    {"name": "say", "description": "Says its text", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}},
    {"name": "wait", "description": "Waits", "inputSchema": {"type": "object", "properties": {"seconds": {"type": "number"}}}},
    {"name": "headers", "description": "Shows what it was sent", "inputSchema": {"type": "object"}},
    {"name": "flood", "description": "Never ends", "inputSchema": {"type": "object", "properties": {"kind": {"type": "string"}}}},
    {"name": "large", "description": "Says much", "inputSchema": {"type": "object", "properties": {"bytes": {"type": "integer"}}}},
]
lock = threading.Lock()
streams = {}
# Of logins: what the code must be redeemed with, and the tokens that were given out.
challenges = {}
tokens = []


def note(line):
    with lock, open(LOG_FILE, "a") as log:
        log.write(line + "\n")


def text(said):
    return {"content": [{"type": "text", "text": said}]}


def result(message, headers):
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method != "tools/call":
        return None
    name, arguments = params["name"], params.get("arguments") or {}
    note(f"call {name} {json.dumps(arguments)}")
    if name == "say":
        return text(arguments["text"])
    if name == "wait":
        time.sleep(arguments["seconds"])
        return text("waited")
    if name == "large":
        return text("x" * arguments["bytes"])
    return text(json.dumps(dict(headers)))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def refused(self):
        path = urlsplit(self.path).path
        note(f"{self.command} {path}")
        if path == "/guarded":
            if self.headers.get("Authorization") in [f"Bearer {token}" for token in tokens]:
                return False
            where = f'Bearer resource_metadata="{self.base()}/.well-known/oauth-protected-resource/guarded"'
            self.reply(401, b"", "text/plain", **{"WWW-Authenticate": where})
            return True
        if TOKEN and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.reply(401, b"who are you?", "text/plain", **{"WWW-Authenticate": "Bearer"})
            return True
        return False

    def base(self):
        return f"http://127.0.0.1:{server.server_port}"

    def say(self, status, value):
        self.reply(status, json.dumps(value).encode())

    def authorization(self, body=None):
        """The authorization server; whether this was for it."""
        path = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(path.query if body is None else body.decode()).items()}
        if path.path == "/.well-known/oauth-protected-resource/guarded":
            self.say(200, {"resource": f"{self.base()}/guarded", "authorization_servers": [self.base()]})
        elif path.path == "/.well-known/oauth-authorization-server":
            self.say(200, {"issuer": self.base(), "authorization_endpoint": f"{self.base()}/authorize", "token_endpoint": f"{self.base()}/token",
                           "registration_endpoint": f"{self.base()}/register", "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                           "grant_types_supported": ["authorization_code", "refresh_token"], "token_endpoint_auth_methods_supported": ["none"]})
        elif path.path == "/register":
            self.say(201, {"client_id": "registered", "redirect_uris": json.loads(body)["redirect_uris"], "token_endpoint_auth_method": "none"})
        elif path.path == "/authorize":
            challenges["code-1"] = asked["code_challenge"]
            self.reply(302, Location=f"{asked['redirect_uri']}?{urlencode({'code': 'code-1', 'state': asked['state'], 'iss': self.base()})}")
        elif path.path == "/token":
            note(f"grant {asked['grant_type']}")
            if asked["grant_type"] == "authorization_code":
                proof = base64.urlsafe_b64encode(hashlib.sha256(asked["code_verifier"].encode()).digest()).decode().rstrip("=")
                granted = challenges.pop(asked["code"], None) == proof
            else:
                granted = asked["refresh_token"].startswith("issued-refresh-")
            if not granted:
                self.say(400, {"error": "invalid_grant"})
                return True
            tokens.append(f"issued-access-{len(tokens)}")
            # The first one does not live long.
            self.say(200, {"access_token": tokens[-1], "token_type": "Bearer", "expires_in": 1 if len(tokens) == 1 else 3600, "refresh_token": f"issued-refresh-{len(tokens)}"})
        else:
            return False
        return True

    def answer(self, message):
        found = result(message, self.headers)
        if found is None:
            return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "method not found"}}
        return {"jsonrpc": "2.0", "id": message["id"], "result": found}

    def flood(self, kind):
        """A body without an end, as an answer, an event or a refusal; logs how much of it was taken."""
        self.send_response(500 if kind == "refusal" else 200)
        self.send_header("Content-Type", "text/event-stream" if kind in ["event", "lines"] else "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        piece, taken = (b"data: x\r\n" * (1 << 17) if kind == "lines" else b"x" * (1 << 20)), 0
        try:
            self.wfile.write(b"data: " if kind == "event" else b'{"jsonrpc": "2.0", "id": "')
            while taken < 2048:
                self.wfile.write(piece)
                taken += 1
        except OSError:
            pass
        self.close_connection = True
        note(f"flood {kind} {taken}")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.authorization(body) or self.refused():
            return
        path = urlsplit(self.path)
        if path.path == "/elsewhere":
            self.reply(307, Location=f"http://127.0.0.1:{int(path.query)}/mcp")
            return
        message = json.loads(body)
        if path.path == "/post":
            self.reply(202)
            if "id" in message:
                threading.Thread(target=lambda: streams[path.query].put(self.answer(message)), daemon=True).start()
        elif path.path not in ["/mcp", "/guarded"]:
            self.reply(404, b"{}")
        elif "id" not in message:
            self.reply(202)
        elif message["method"] == "tools/call" and message["params"]["name"] == "flood":
            self.flood(message["params"]["arguments"]["kind"])
        elif message["method"] == "tools/call":
            # One of its two ways to answer.
            event = f"event: message\ndata: {json.dumps(self.answer(message))}\n\n"
            self.reply(200, event.encode(), "text/event-stream")
        else:
            session = {"Mcp-Session-Id": "one"} if message["method"] == "initialize" else {}
            self.reply(200, json.dumps(self.answer(message)).encode(), **session)

    def do_GET(self):
        if self.authorization() or self.refused():
            return
        if self.path != "/sse":
            self.reply(405)
            return
        with lock:
            name = str(len(streams))
            streams[name] = queue.Queue()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(f"event: endpoint\ndata: /post?{name}\n\n".encode())
        while True:
            self.wfile.flush()
            self.wfile.write(f"event: message\ndata: {json.dumps(streams[name].get())}\n\n".encode())

    def do_DELETE(self):
        if not self.refused():
            self.reply(200)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(PORT_FILE + ".new", "w") as file:
    file.write(str(server.server_port))
os.rename(PORT_FILE + ".new", PORT_FILE)
server.serve_forever()
