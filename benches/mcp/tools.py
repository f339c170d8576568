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


def own_seconds(script, count=200):
    """How long the upstream server itself takes for a call."""
    process = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    times = []
    try:
        for number in range(count):
            begun = now()
            request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "say", "arguments": {"text": "x"}}}
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            process.stdout.readline()
            times.append(now() - begun)
    finally:
        process.kill()
        process.wait()
    return statistics.median(times)


def measure(config, logs, count):
    """The same program without a call, with one and with eleven, in turn; what each call adds, in ms."""
    with tempfile.TemporaryDirectory(prefix="mcp-bench-") as folder:
        script = os.path.join(folder, "echo.py")
        with open(script, "w") as file:
            file.write(ECHO)
        os.makedirs(os.path.join(folder, "hotcell"))
        with open(os.path.join(folder, "hotcell/config.toml"), "w") as file:
            file.write(f"[servers.echo]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(script)}]\n")
        own = own_seconds(script)
        server = Server({**config, "env": {**config.get("env", {}), "XDG_CONFIG_HOME": folder}}, logs)
        out = {"upstream_ms": own * 1e3}
        try:
            server.initialize()
            time.sleep(2)
            for language, programs in PROGRAMS.items():
                if language not in config:
                    continue
                times, wrong, error = [[], [], []], 0, None
                for turn in range(count + 5):
                    for kind, code in zip(times, programs):
                        # A pool is filled behind an answer.
                        time.sleep(PAUSE[language])
                        seconds, text, bad = server.call(language, code)
                        if bad or "ab" not in text:
                            wrong, error = wrong + 1, error or text[:300]
                        elif turn >= 5:
                            kind.append(seconds)
                if not all(times):
                    out[language] = {"wrong": wrong, "error": error}
                    continue
                plain, one, many = (statistics.median(kind) for kind in times)
                out[language] = {"plain_ms": plain * 1e3, "first_ms": (one - plain - own) * 1e3,
                                 "next_ms": ((many - one) / MORE - own) * 1e3, "wrong": wrong, "error": error}
        finally:
            server.close()
        return out
