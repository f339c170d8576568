#!/usr/bin/env python3
"""What a second run costs, as a ratio to a run that needs none of it. `scripts/bench second` runs this.

- a set of packages that is installed already, over MCP, to the same program without packages
- a C program that is built already, to a static binary that was never ours to build
- a busy program in a new sandbox and in a pre-started one, to the same program without hotcell, in its own processor time

Pairs run side by side, so that a busy moment meets both, and the best of each counts. Exit 1 if a goal is missed.
"""
import hashlib, http.server, io, json, os, subprocess, sys, tempfile, threading, time, zipfile

GOALS = {"packages": 1.2, "compiled": 1.5, "busy, new": 1.25, "busy, pre-started": 1.25}
HELLO = '#include <stdio.h>\nint main(void) { puts("hi"); return 0; }\n'
QUICK = 'name = "Quick"\n[runtime]\ncommands = ["quick"]\n[source]\nfile = "main.q"\n[run]\nargv = ["{runtime}", "{file}"]\n'
BUSY = "import time\nstart = time.process_time()\nsum(n * n % 7 for n in range(1_000_000))\nprint(time.process_time() - start)"


class Server:
    """`hotcell serve`, one call at a time."""

    def __init__(self, command, environment):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([*command, "serve"], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment)
        self.next = 0
        opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.request("initialize", opening)

    def request(self, method, params):
        self.next += 1
        message = {"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.next and "method" not in answer:
                return answer["result"]
        sys.exit("the server ended")

    def run(self, **arguments):
        return self.request("tools/call", {"name": "run", "arguments": arguments})["structuredContent"]["stdout"]


def registry(folder):
    """A package index with one small package; its address."""
    info, name = "tinything-1.0.dist-info", "tinything-1.0-py3-none-any.whl"
    files = {"tinything/__init__.py": "", f"{info}/METADATA": "Metadata-Version: 2.1\nName: tinything\nVersion: 1.0\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    page = f'<a href="/{name}#sha256={hashlib.sha256(wheel.getvalue()).hexdigest()}" data-upload-time="2020-01-01T00:00:00Z">{name}</a>'
    os.makedirs(f"{folder}/simple/tinything")
    with open(f"{folder}/simple/tinything/index.html", "w") as file:
        file.write(page)
    with open(f"{folder}/{name}", "wb") as file:
        file.write(wheel.getvalue())

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=folder)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/simple"


def timed(work, expected):
    begun = time.monotonic()
    printed = work()
    took = time.monotonic() - begun
    if printed != expected:
        sys.exit(f"printed {printed!r}")
    return took


def best(rounds, *works):
    """The least of each, taken in turns, after a few that do not count."""
    times = [[work() for work in works] for _ in range(rounds + 4)][4:]
    return [min(column) for column in zip(*times)]


def main():
    hotcell, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60
    home = tempfile.mkdtemp(prefix="second-run-")
    os.makedirs(f"{home}/bin")
    os.makedirs(f"{home}/.config/hotcell/languages")
    with open(f"{home}/.config/hotcell/languages/quick.toml", "w") as file:
        file.write(QUICK)
    environment = {"HOME": home, "PATH": f"{home}/bin:/usr/local/bin:/usr/bin:/bin"}
    told = {}

    def run(*command):
        return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout

    def ours(language, code):
        return run(hotcell, "run", "-l", language, "-c", code)

    index = registry(f"{home}/index")
    server = Server([hotcell], {**environment, "HOTCELL_PYPI_INDEX": index})

    def call(packages):
        return timed(lambda: server.run(code="print(1)", language="python", packages=packages), "1\n")

    plain, packed = best(rounds, lambda: call([]), lambda: call(["tinything"]))
    told["packages"] = packed / plain

    subprocess.run(["gcc", "-static", "-O1", "-x", "c", "-", "-o", f"{home}/bin/quick"], input=HELLO, text=True, check=True)
    static, built = best(rounds // 2, lambda: timed(lambda: ours("quick", "x"), "hi\n"), lambda: timed(lambda: ours("c", HELLO), "hi\n"))
    told["compiled"] = built / static

    plain, new, prestarted = best(max(rounds // 5, 1), lambda: float(run("/usr/bin/python3", "-c", BUSY)),
                                  lambda: float(ours("python", BUSY)), lambda: float(server.run(code=BUSY, language="python")))
    told["busy, new"], told["busy, pre-started"] = new / plain, prestarted / plain
    server.process.stdin.close()
    server.process.wait()
    for name, ratio in told.items():
        print(f"{name:<20} {ratio:5.2f}  goal {GOALS[name]:.2f}  {'met' if ratio <= GOALS[name] else 'MISSED'}")
    return any(ratio > GOALS[name] for name, ratio in told.items())


if __name__ == "__main__":
    sys.exit(main())
