"""What a call of another server's tool costs a program, beyond the program and beyond that server."""
from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from client import Server
from machine import now

# An upstream server that does nothing but answer.
ECHO = '''
import json, sys
TOOLS = [{"name": "say", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    else:
        result = {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
'''
MORE = 10  # calls after the first
PAUSE = {"python": .02, "js": .25}  # in which a pool is filled behind an answer
PROGRAMS = {
    "python": ("print('a' + 'b')", "print(echo.say(text='a' + 'b'))",
               f"for _ in range({MORE}): echo.say(text='x')\nprint(echo.say(text='a' + 'b'))"),
    "js": ("console.log('a' + 'b')", "echo.say({ text: 'a' + 'b' }).then(console.log)",
           f"(async () => {{ for (let n = 0; n < {MORE}; n++) await echo.say({{ text: 'x' }}); console.log(await echo.say({{ text: 'a' + 'b' }})); }})()"),
}


class Upstream:
    """The upstream server itself, called by its client without anything between."""

    def __init__(self, script):
        self.process = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.call()

    def call(self):
        request = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"}}}\n'
        begun = now()
        os.write(self.process.stdin.fileno(), request)
        os.read(self.process.stdout.fileno(), 1 << 16)
        return now() - begun

    def after(self, pause):
        """Seconds of a call after a pause, and of each that follows. Its client is awake, as one is that has a run to do."""
        time.sleep(pause - .001)
        awake = now() + .001
        while now() < awake:
            pass
        first = self.call()
        return first, sum(self.call() for _ in range(MORE)) / MORE

    def close(self):
        self.process.kill()
        self.process.wait()


def measure(config, logs, count):
    """The same program without a call, with one and with eleven, and the upstream server alone, in turn; what each call adds, in ms."""
    with tempfile.TemporaryDirectory(prefix="mcp-bench-") as folder:
        script = os.path.join(folder, "echo.py")
        with open(script, "w") as file:
            file.write(ECHO)
        os.makedirs(os.path.join(folder, "hotcell"))
        with open(os.path.join(folder, "hotcell/config.toml"), "w") as file:
            file.write(f"[servers.echo]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(script)}]\n")
        upstream = Upstream(script)
        server = Server({**config, "env": {**config.get("env", {}), "XDG_CONFIG_HOME": folder}}, logs)
        out = {}
        try:
            server.initialize()
            time.sleep(2)
            for language, programs in PROGRAMS.items():
                if language not in config:
                    continue
                times, own, wrong, error = [[], [], []], [], 0, None
                for turn in range(count + 5):
                    for kind, code in zip(times, programs):
                        # A pool is filled behind an answer.
                        time.sleep(PAUSE[language])
                        seconds, text, bad = server.call(language, code)
                        if bad or "ab" not in text:
                            wrong, error = wrong + 1, error or text[:300]
                        elif turn >= 5:
                            kind.append(seconds)
                    own.append(upstream.after(PAUSE[language]))
                if not all(times):
                    out[language] = {"wrong": wrong, "error": error}
                    continue
                plain, one, many = (statistics.median(kind) * 1e3 for kind in times)
                own_first, own_next = (statistics.median(kind) * 1e3 for kind in zip(*own))
                first, each = one - plain, (many - one) / MORE
                out[language] = {"plain_ms": plain, "first_ms": first - own_first, "next_ms": each - own_next, "first_with_own_ms": first,
                                 "next_with_own_ms": each, "own_first_ms": own_first, "own_next_ms": own_next, "wrong": wrong, "error": error}
        finally:
            upstream.close()
            server.close()
        return out
