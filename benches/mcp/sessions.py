"""What the calls of a session cost, beside a warm run and plain Python in the same loop; and a copy of one that holds much."""
from __future__ import annotations

import statistics
import time

from client import Server, failed, text_of
from machine import summary

HELD = 200  # MB
BEGIN, NEXT = "x = 41", "x += 1; x"


def measure(config, logs, count, baseline):
    """In turn a warm run, the first call of a new session and three later ones, with the baseline before each. Then copies of a large session."""
    server = Server(config, logs)

    def call(**arguments):
        # In which a pool is filled behind an answer.
        baseline.sample()
        return server.request("tools/call", {"name": "run", "arguments": {"language": "python", **arguments}})

    def act(**arguments):
        return server.request("tools/call", {"name": "session", "arguments": arguments})

    times = {"run": [], "first": [], "later": [], "fork": []}
    wrong, error = 0, None

    def note(kind, turn, made, right=None):
        nonlocal wrong, error
        seconds, message = made
        if failed(message) or right and right not in text_of(message):
            wrong, error = wrong + 1, error or text_of(message)[:300]
        elif turn >= 0:
            times[kind].append(seconds)

    try:
        server.initialize()
        time.sleep(1.5)
        baseline.restart()
        for turn in range(-3, count):
            if wrong >= 3 and not times["first"]:
                return {"wrong": wrong, "error": error}
            note("run", turn, call(code="print(6*7)"), "42")
            note("first", turn, call(code=BEGIN, session="s"))
            for later in range(3):
                note("later", turn, call(code=NEXT, session="s"), str(42 + later))
            act(action="close", name="s")
        call(code=f"x = 41; held = b'x' * {HELD * 10**6}", session="large")
        for turn in range(-2, max(10, count // 4)):
            note("fork", turn, act(action="fork", name="large", to="copy"))
            note("none", -1, call(code=NEXT, session="copy"), "42")
            act(action="close", name="copy")
            time.sleep(.1)
        base = baseline.denominators()
    finally:
        server.close()
    if not all(times.values()):
        return {"wrong": wrong, "error": error}
    run, first, later = (statistics.median(times[kind]) for kind in ("run", "first", "later"))
    return {"run_ms": run * 1e3, "first_ms": first * 1e3, "later_ms": later * 1e3, "first_to_run": first / run,
            "later_to_run": later / run, "later_to_python": later / base["python"],
            "fork_ms": statistics.median(times["fork"]) * 1e3, "fork_least_ms": min(times["fork"]) * 1e3, "wrong": wrong,
            "error": error, "t": {kind: summary(values) for kind, values in times.items()}}
