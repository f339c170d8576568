#!/usr/bin/env python3
"""How long the MCP tool `search` takes over a thousand tools, and what they cost a model.

`scripts/bench search` runs this. Exit 1 if a goal is missed.

The tools and the questions are those of tests/data. A question is asked over stdio, as a client does; the first makes the index and is told
apart. The goal is 5 ms for 99 of 100 questions, and 700 tokens for the whole list of tools.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SERVERS, EACH, ROUNDS = 8, 125, 4


class Client:
    def __init__(self, program, home):
        environment = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": f"{home}/.config", "XDG_STATE_HOME": f"{home}/state", "XDG_DATA_HOME": f"{home}/data"}
        self.child = subprocess.Popen([program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment)
        self.last = 0

    def request(self, method, params):
        self.last += 1
        self.child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}) + "\n")
        while True:
            answer = json.loads(self.child.stdout.readline())
            if answer.get("id") == self.last:
                return answer["result"]


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as home:
        folder = pathlib.Path(home, ".config/hotcell")
        folder.mkdir(parents=True)
        stub, tools = ROOT / "tests/servers/many.py", ROOT / "tests/data/tools.jsonl"
        server = "[servers.s{0}]\ncommand = 'python3'\nargs = ['{1}', '{2}', '{3}', '{4}']\n"
        folder.joinpath("config.toml").write_text("".join(server.format(at, stub, tools, at * EACH, EACH) for at in range(SERVERS)))
        client = Client(program, home)
        client.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}})
        expected = f"s{SERVERS - 1}({EACH})"
        while expected not in json.dumps(listed := client.request("tools/list", {})["tools"]):
            time.sleep(0.1)
        shown = sum(len(json.dumps({key: tool[key] for key in ("name", "description", "inputSchema")})) for tool in listed)
        steps = [step for line in open(ROOT / "tests/data/tasks.jsonl", encoding="utf-8") for step in json.loads(line)["steps"]]
        times = []
        for step in steps[:1] + steps * ROUNDS:
            begun = time.perf_counter()
            client.request("tools/call", {"name": "search", "arguments": {"query": step}})
            times.append(1000 * (time.perf_counter() - begun))
        client.child.stdin.close()
    first, rest = times[0], sorted(times[1:])
    print(f"{SERVERS * EACH} tools, {len(rest)} questions: median {rest[len(rest) // 2]:.2f} ms, p99 {rest[len(rest) * 99 // 100]:.2f} ms, most {rest[-1]:.2f} ms; the first {first:.0f} ms")
    is_met = rest[len(rest) * 99 // 100] <= 5
    print(f"the list of tools has {shown} characters, about {shown // 4} tokens")
    return 0 if is_met and shown <= 2800 else 1


sys.exit(main())
