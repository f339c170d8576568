#!/usr/bin/env python3
"""What people at a shell wait for, and what printing costs, as ratios to a plain command in the same loop. `scripts/bench shell` runs this.

- `hotcell run` alone and beside a server of the same user, the start of a server up to its first result, and the second call of a session: to
  `python3 -c 'print(1)'`
- programs that print much, or little with pauses: to the same program of plain Python whose output goes to a pipe

Exit 1 if a goal is missed.
"""
import os, statistics, subprocess, sys, tempfile, time

from second_run import Server

PYTHON = "/usr/bin/python3"
ONE = "print(1)"
LINES = "for n in range(300_000):\n    print('line', n)"
BLOCKS = "import sys\nblock = 'x' * 65_535 + '\\n'\nfor n in range(1600):\n    sys.stdout.write(block)"
PAUSES = "import time\nfor n in range(50):\n    print(n)\n    time.sleep(0.01)"
# What may be printed without being ended for it.
MUCH = ["--output-limit", "200m"]
GOALS = {
    "run, alone": 1.25, "run, beside a server": 0.5, "server start to result": 1.0, "second call of a session": 0.05,
    "300,000 lines, alone": 1.5, "300,000 lines, beside a server": 1.5, "300,000 lines over MCP": 1.5,
    "100 MB in blocks, beside a server": 1.5, "50 lines with pauses, beside a server": 1.1,
}


def took(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ratios(rounds, plain, **works):
    """The median of each over that of `plain`, in turns, after two rounds that do not count."""
    all = {"": plain, **works}
    times = [{name: took(work) for name, work in all.items()} for _ in range(rounds + 2)][2:]
    middle = {name: statistics.median(it[name] for it in times) for name in all}
    return {name: middle[name] / middle[""] for name in works}


def main():
    hotcell, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40
    home = tempfile.mkdtemp(prefix="shell-")
    os.mkdir(f"{home}/run", 0o700)
    environment = {"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin", "XDG_RUNTIME_DIR": f"{home}/run"}

    def run(*command):
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode or done.stderr:
            sys.exit(f"{command}: {done.stderr.decode()}")
        return done.stdout

    def ours(code, *options):
        return lambda: run(hotcell, "run", *options, "-l", "python", "-c", code)

    def plain(code):
        return lambda: run(PYTHON, "-c", code)

    def first_result():
        server = Server([hotcell], {**environment, "XDG_RUNTIME_DIR": ""})
        server.run(code=ONE, language="python")
        server.process.kill()
        server.process.wait()

    server = Server([hotcell], environment)
    # A pool of its own for programs that a shell starts.
    for _ in range(3):
        ours(ONE)()
        time.sleep(0.3)
    server.run(code=ONE, language="python", session="bench")
    told = {}
    found = ratios(rounds, plain(ONE), alone=ours(ONE, "--no-server"), beside=ours(ONE), start=first_result,
                   session=lambda: server.run(code=ONE, language="python", session="bench"))
    told["run, alone"], told["run, beside a server"] = found["alone"], found["beside"]
    told["server start to result"], told["second call of a session"] = found["start"], found["session"]

    few = max(rounds // 8, 3)
    found = ratios(few, plain(LINES), alone=ours(LINES, "--no-server", *MUCH), beside=ours(LINES, *MUCH),
                   mcp=lambda: server.run(code=LINES, language="python"))
    told["300,000 lines, alone"], told["300,000 lines, beside a server"] = found["alone"], found["beside"]
    told["300,000 lines over MCP"] = found["mcp"]
    told["100 MB in blocks, beside a server"] = ratios(few, plain(BLOCKS), it=ours(BLOCKS, *MUCH))["it"]
    told["50 lines with pauses, beside a server"] = ratios(few, plain(PAUSES), it=ours(PAUSES))["it"]
    server.process.stdin.close()
    server.process.wait()
    for name, ratio in told.items():
        print(f"{name:<40} {ratio:6.3f}  goal {GOALS[name]:.2f}  {'met' if ratio <= GOALS[name] else 'MISSED'}")
    return any(ratio > GOALS[name] for name, ratio in told.items())


if __name__ == "__main__":
    sys.exit(main())
