#!/usr/bin/env python3
"""Side-by-side benchmark of MCP servers that run code, over stdio. Linux, standard library only.

    mcp_bench.py --server 'hotcell=hotcell serve' --peers DIR/peers.json --out result.json
    mcp_bench.py --server 'hotcell=hotcell serve' --sections warm --gate 'warm_py_wall_ratio<=0.1'
    mcp_bench.py --table result.json

Every timed loop also runs raw commands, `true` and `python3 -c 'print(1)'`, between the calls it
times. A result is a ratio to the median of that baseline in the same loop, so that it means the same
on a quiet and on a busy machine. See README.md for the metrics, the gates and how to read them.

The harness is a child subreaper: whatever a server leaves behind becomes its descendant, is counted,
and is killed by pid. It never signals a process that is not its own descendant.
"""
from __future__ import annotations

import argparse
import ctypes
import json
import os
import shlex
import shutil
import sys
import tempfile
import time

from machine import Baseline, CpuMeter, kill_leftovers, summary
from report import check_gate, goals_table, markdown, metrics_of
from sections import SECTIONS, Bench, say


class ServerOption(argparse.Action):
    """--server NAME=CMD opens a server; --tool, --code-arg and so on describe the last one opened."""

    def __call__(self, parser, options, value, flag):
        if flag == "--server":
            name, _, command = value.partition("=")
            options.servers.append({"name": name, "command": shlex.split(command), "tool": "run", "code_arg": "code",
                                    "lang_arg": "language", "langs": "python=python,js=javascript",
                                    "timeout_arg": "timeout", "timeout_scale": 1.0, "args": {}, "env": {}})
        elif not options.servers:
            parser.error(f"{flag} must follow a --server")
        elif flag == "--just":
            options.servers[-1]["sections"] = value.split(",")
        elif flag in ("--arg", "--env"):
            key, _, text = value.partition("=")
            options.servers[-1][flag[2:].replace("arg", "args")][key] = json.loads(text) if flag == "--arg" else text
        else:
            options.servers[-1][flag[2:].replace("-", "_")] = value


def server_config(described):
    """The description from the command line in the form of a peers.json entry."""
    config = {"name": described["name"], "command": described["command"], "env": described["env"]}
    if "sections" in described:
        config["sections"] = described["sections"]
    for pair in described["langs"].split(","):
        language, _, value = pair.partition("=")
        arguments = {described["code_arg"]: "${code}", **described["args"]}
        if described["lang_arg"]:
            arguments[described["lang_arg"]] = value
        config[language] = {"tool": described["tool"], "args": arguments, "timeout_arg": described["timeout_arg"],
                            "timeout_scale": float(described["timeout_scale"])}
    return config


def default_raw(python):
    """Raw commands that need nothing but what is installed."""
    bwrap = ("bwrap --ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64 --dev /dev --proc /proc "
             "--tmpfs /tmp --unshare-all --die-with-parent").split()
    node = [shutil.which("node") or "node"]
    rows = [("true", ["/bin/true"], ""), ("python3 -c", [python, "-c", "print(1)"], "1"),
            ("python3 -I -S -c", [python, "-I", "-S", "-c", "print(1)"], "1"),
            ("python3 -c 'import numpy'", [python, "-c", "import numpy; print(int(numpy.ones(1)[0]))"], "1"),
            ("node -e", node + ["-e", "console.log(1)"], "1"),
            ("bwrap python3 -I -S -c", bwrap + [python, "-I", "-S", "-c", "print(1)"], "1")]
    return [{"name": name, "command": command, "expect": expect} for name, command, expect in rows if shutil.which(command[0])]


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    parser.set_defaults(servers=[])
    add("--server", action=ServerOption, metavar="NAME=CMD", help="a server to measure; repeatable")
    for flag, metavar, text in (
            ("--tool", "TOOL", "its tool that runs code (default run)"),
            ("--code-arg", "ARG", "its argument for the code (default code)"),
            ("--lang-arg", "ARG", "its argument for the language (default language; '' for none)"),
            ("--langs", "LIST", "its languages (default python=python,js=javascript)"),
            ("--timeout-arg", "ARG", "its argument for a time limit (default timeout; '' for none)"),
            ("--timeout-scale", "X", "its units per second (default 1; 1000 for ms)"),
            ("--arg", "KEY=JSON", "a constant argument; repeatable"),
            ("--env", "KEY=VALUE", "an environment variable; repeatable"),
            ("--just", "SECTIONS", "measure only these of it, whatever --sections says")):
        add(flag, action=ServerOption, metavar=metavar, help="  " + text)
    add("--peers", metavar="FILE", help="peers.json as written by setup-peers")
    add("--only", default="", metavar="NAMES", help="of the peers only these, comma-separated; 'none' for no peer")
    add("--raw", action="append", default=[], metavar="NAME=CMD", help="a raw command that prints 1; repeatable")
    add("--sections", default=",".join(SECTIONS), help="comma-separated, of: " + " ".join(SECTIONS))
    add("--python", default="/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable)
    add("--n", type=int, default=100, help="calls per timed loop")
    add("--width", type=int, default=8, help="calls in flight in conc")
    add("--starts", type=int, default=5)
    add("--raw-n", type=int, default=20)
    add("--count-cgroup", action="append", default=[], metavar="DIR", help="also count the CPU time of this cgroup")
    add("--logs", metavar="DIR", help="where servers' stderr goes (default: a temporary directory)")
    add("--out", metavar="FILE", help="write the JSON result here")
    add("--markdown", metavar="FILE", help="write the table here too")
    add("--gate", action="append", default=[], metavar="EXPR", help="[SERVER:]METRIC<=NUMBER[*SERVER:METRIC]; exit 1 if false")
    add("--goals", metavar="FILE", help="goals.json: print what was asked and what was met; exit 1 if not all is")
    add("--figures", metavar="FILE", help="figures of the first --server that were measured elsewhere, as one JSON object")
    add("--table", metavar="FILE", help="print the table of a stored result (and check gates against it)")
    options = parser.parse_args()
    options.sections = options.sections.split(",")
    asked = options.sections + [section for server in options.servers for section in server.get("sections", [])]
    if unknown := set(asked) - set(SECTIONS):
        parser.error(f"unknown sections: {', '.join(sorted(unknown))}")
    return options


def measure_all(options):
    peers = json.load(open(options.peers)) if options.peers else {"servers": [], "raw": []}
    chosen = [server_config(described) for described in options.servers]
    chosen += [peer for peer in peers["servers"] if not options.only or peer["name"] in options.only.split(",")]
    raw = default_raw(options.python) + peers.get("raw", [])
    raw += [{"name": name, "command": shlex.split(command)} for name, _, command in (r.partition("=") for r in options.raw)]
    options.logs = options.logs or tempfile.mkdtemp(prefix="mcp-bench-")
    os.makedirs(options.logs, exist_ok=True)
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    meter = CpuMeter(options.count_cgroup)
    run = {"date": time.strftime("%F %T %Z"), "kernel": os.uname().release, "cpus": os.cpu_count(),
           "load_start": os.getloadavg(), "cpu_source": meter.source, "raw": [], "servers": [],
           "given": [described["name"] for described in options.servers]}
    try:
        baseline = Baseline(options.python, meter)
        bench = Bench(options, meter, baseline)
        if bench.wants("raw"):
            say("raw commands")
            run["raw"] = bench.measure_raw(raw)
        for config in chosen if bench.wants(*SECTIONS[1:]) else []:
            say(config["name"])
            run["servers"].append(bench.measure(config))
        run["baseline"] = {name: summary(values) for name, values in baseline.everything.items()}
    finally:
        kill_leftovers()
        meter.close()
    run["load_end"] = os.getloadavg()
    say(f"servers' stderr: {options.logs}")
    return run


def main():
    options = parse_options()
    run = json.load(open(options.table)) if options.table else measure_all(options)
    run["metrics"] = {result["name"]: metrics_of(result) for result in run["servers"]}
    if options.figures:
        with open(options.figures) as file:
            metrics = run["metrics"].setdefault(run["given"][0], {})
            metrics.update(json.load(file))
        if {"dense_py_own_cpu_ms", "engine_own_cpu_ms"} <= metrics.keys():
            metrics["added_cpu_ms"] = metrics["dense_py_own_cpu_ms"] - metrics["engine_own_cpu_ms"]
    if options.out:
        with open(options.out, "w") as file:
            json.dump(run, file, indent=1)
    table = markdown(run)
    print(table)
    if options.markdown:
        with open(options.markdown, "w") as file:
            file.write(table)
    verdicts = [line for gate in options.gate
                for line in check_gate(gate, run["metrics"], run["given"] or list(run["metrics"]))]
    print("\n".join(verdicts))
    met = True
    if options.goals:
        with open(options.goals) as file:
            told, met = goals_table(json.load(file), run["metrics"], run["given"])
        print(told)
    return 0 if met and not any(line.startswith("FAIL") for line in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
