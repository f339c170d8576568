"""What a run says: flat metrics, the markdown table, and gates on them."""
from __future__ import annotations

import operator
import re
import statistics

BIG_BYTES = 5_000_000


def metrics_of(result):
    """The flat figures of one server: what gates and the table use."""
    flat = {}

    def put(name, value):
        if value is not None:
            flat[name] = value

    def timing(name, entry, times):
        base = (entry or {}).get("base")
        if base and times:
            put(name + "_p50_ms", times["p50"] * 1e3)
            put(name + "_p99_ms", times["p99"] * 1e3)
            put(name + "_tail", times["p99"] / times["p50"])
            put(name + "_wall_ratio", times["p50"] / base["python"])
            put(name + "_p99_ratio", times["p99"] / base["python"])
            put(name + "_true_ratio", times["p50"] / base["true"])
            if "node" in base:
                put(name + "_node_ratio", times["p50"] / base["node"])

    def cpu(name, entry, seconds):
        if seconds is not None and entry.get("base"):
            put(name + "_cpu_ms", seconds * 1e3)
            put(name + "_cpu_ratio", seconds / entry["base"]["python_cpu"])

    start = result.get("start", {})
    timing("start_init", start, start.get("initialize"))
    timing("start_result", start, start.get("result"))
    cpu("start", start, (start.get("cpu") or {}).get("mean"))
    for key, name in (("warm", "warm_py"), ("dense", "dense_py"), ("js", "warm_js"), ("numpy", "numpy"), ("pandas", "pandas"), ("burst", "burst"),
                      ("big_lines", "big_lines"), ("big_line", "big_line")):
        entry = result.get(key, {})
        timing(name, entry, entry.get("t"))
        if entry.get("t"):
            cpu(name, entry, entry.get("cpu"))
        if entry.get("own"):
            put(name + "_own_cpu_ms", entry["own"] * 1e3)
        put(name + "_wrong", entry.get("wrong"))
        put(name + "_kept_bytes", entry.get("kept_bytes"))
    put("burst_right_share", result.get("burst", {}).get("right_share"))
    for key, name in (("conc", "conc_py"), ("conc_js", "conc_js"), ("flow", "flow_py")):
        entry = result.get(key, {})
        put(name + "_calls_per_s", entry.get("calls_per_s"))
        put(name + "_right_share", entry.get("right_share"))
        cpu(name, entry, entry.get("cpu"))
        if entry.get("base"):
            put(name + "_wall_ratio", 1 / entry["calls_per_s"] / entry["base"]["python"])
    for language, name in (("python", "tool_py"), ("js", "tool_js")):
        for key, value in (result.get("tools", {}).get(language) or {}).items():
            if key != "error":
                put(f"{name}_{key}", value)
    for key, value in result.get("sessions", {}).items():
        if key not in ("error", "t"):
            put("session_" + key, value)
    put("sleep8_seconds", result.get("sleep8", {}).get("seconds"))
    put("sleep8_right", result.get("sleep8", {}).get("right"))
    for language, name in (("python", "timeout_py"), ("js", "timeout_js")):
        entry = result.get("timeout_" + language, {})
        for key in ("returned_s", "ping_s", "burning", "extra_processes", "next_call_s"):
            put(f"{name}_{key}", entry.get(key))
        if "survivors" in entry:
            put(name + "_survivors", len(entry["survivors"]))
            put(name + "_next_right", int(entry["next_call_right"]))
    main = result.get("main", {})
    if main.get("idle_python"):
        put("idle_python_processes", len(main["idle_python"]))
        put("idle_python_private", statistics.median(main["idle_python"]))
        put("idle_python_private_most", main["idle_python"][-1])
    for when in ("idle", "pooled", "after"):
        for kind, value in main.get("memory_" + when, {}).items():
            put(f"mem_{when}_{kind}", value)
    put("stdout_noise", main.get("stdout_noise"))
    if "survivors" in main:
        put("survivors", len(main["survivors"]))
    return flat


def number(value):
    return "-" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def markdown(run):
    """The tables of one stored run."""
    base = run["baseline"]
    lines = [f"{run['date']}, {run['cpus']} CPUs, load {run['load_start'][0]:.1f} to {run['load_end'][0]:.1f}, "
             f"CPU figures from {run['cpu_source']}. Baselines over the whole run: `python3 -c 'print(1)'` p50 "
             f"{base['python']['p50'] * 1e3:.1f} ms, p99 {base['python']['p99'] * 1e3:.1f}; `true` p50 "
             f"{base['true']['p50'] * 1e3:.2f} ms (n={base['python']['n']}). × is the ratio to the python baseline "
             "of the same loop.", ""]
    if run["servers"]:
        lines += ["| server | spawn to result ms (×; CPU×) | warm py p50 / p99 ms | × | CPU× | dense × | warm js ms (×; CPU×) "
                  "| numpy ms (×) | pandas ms (×) | in flight: calls/s, right | 8 sleepers s, right | 5 MB lines / one line ms "
                  "| limit or cancel: s, burning, left | PSS idle / after MiB |", "|" + "---|" * 14]
        for result in run["servers"]:
            get = metrics_of(result).get
            show = lambda name: number(get(name))
            big = ["-" if get(f"big_{shape}_kept_bytes") is None else
                   (f"{number(get(f'big_{shape}_p50_ms'))}" if get(f"big_{shape}_p50_ms") else "FAIL")
                   + ("" if get(f"big_{shape}_kept_bytes") >= BIG_BYTES * .99 else f" ({get(f'big_{shape}_kept_bytes')} B)")
                   for shape in ("lines", "line")]
            share = get("conc_py_right_share")
            lines.append("| " + " | ".join([
                result["name"], f"{show('start_result_p50_ms')} ({show('start_result_wall_ratio')}; {show('start_cpu_ratio')})",
                f"{show('warm_py_p50_ms')} / {show('warm_py_p99_ms')}", show("warm_py_wall_ratio"), show("warm_py_cpu_ratio"),
                show("dense_py_wall_ratio"),
                f"{show('warm_js_p50_ms')} ({show('warm_js_wall_ratio')}; {show('warm_js_cpu_ratio')})",
                "FAIL" if get("numpy_wrong") else f"{show('numpy_p50_ms')} ({show('numpy_wall_ratio')})",
                "FAIL" if get("pandas_wrong") else f"{show('pandas_p50_ms')} ({show('pandas_wall_ratio')})",
                f"{show('conc_py_calls_per_s')}, {'-' if share is None else f'{share:.0%}'}",
                f"{show('sleep8_seconds')}, {show('sleep8_right')}/8", " / ".join(big),
                f"{show('timeout_py_returned_s')}, {show('timeout_py_burning')}, {show('timeout_py_survivors')}",
                f"{show('mem_idle_pss')} / {show('mem_after_pss')}"]) + " |")
        lines.append("")
        for result in run["servers"]:
            get = metrics_of(result).get
            for name, language in (("tool_py", "Python"), ("tool_js", "JavaScript")):
                if get(name + "_first_ms") is not None:
                    lines += [f"{result['name']}: a tool call of another server adds {number(get(name + '_first_ms'))} ms to a {language} run "
                              f"of {number(get(name + '_plain_ms'))} ms, each further one {number(get(name + '_next_ms'))} ms, "
                              f"beyond that server's own {number(get(name + '_own_first_ms'))} and {number(get(name + '_own_next_ms'))} ms.", ""]
            if get("session_first_ms") is not None:
                lines += [f"{result['name']}: beside a warm run of {number(get('session_run_ms'))} ms, the first call of a session takes "
                          f"{number(get('session_first_ms'))} ms ({number(get('session_first_to_run'))} ×), later ones {number(get('session_later_ms'))} ms "
                          f"({number(get('session_later_to_run'))} ×; {number(get('session_later_to_python'))} × python3), a copy of one that holds "
                          f"200 MB {number(get('session_fork_ms'))} ms (least {number(get('session_fork_least_ms'))}).", ""]
    if run["raw"]:
        lines += ["| raw command | p50 ms | p99 ms | × | × true | CPU× | n |", "|" + "---|" * 7]
        for row in run["raw"]:
            times, cpu = row["t"], row.get("cpu")
            lines.append(f"| {row['name']} | FAIL | | | | | 0 |" if not times else "| " + " | ".join([
                row["name"], number(times["p50"] * 1e3), number(times["p99"] * 1e3), number(times["p50"] / row["base"]["python"]),
                number(times["p50"] / row["base"]["true"]), number(cpu["mean"] / row["base"]["python_cpu"]) if cpu else "-",
                str(times["n"])]) + " |")
        lines.append("")
    return "\n".join(lines)


GATE = re.compile(r"^(?:(?P<server>[^:]+):)?(?P<metric>\w+)\s*(?P<op><=|>=|==|<|>)\s*(?P<value>[\d.]+)"
                  r"(?:\s*\*\s*(?P<peer>[^:]+):(?P<peer_metric>\w+))?$")
OPERATORS = {"<=": operator.le, ">=": operator.ge, "==": operator.eq, "<": operator.lt, ">": operator.gt}


def goals_table(goals, flats, default_servers):
    """The goals as a table (what, goal, measured, met), and whether all are met."""
    lines, all_met = ["| what | goal | measured | met |", "|---|---|---|---|"], True
    for goal in goals:
        gate = GATE.match(goal["gate"])
        if not gate:
            raise ValueError(f"not a gate: {goal['gate']}")
        server = gate["server"] or default_servers[0]
        measured = flats.get(server, {}).get(gate["metric"])
        met = measured is not None and OPERATORS[gate["op"]](measured, float(gate["value"]))
        all_met &= met
        sign = {"<=": "≤", ">=": "≥"}.get(gate["op"], gate["op"])
        lines.append(f"| {goal['what']} | {sign} {gate['value']}{goal.get('unit', '')} | {number(measured)}{goal.get('unit', '')} "
                     f"| {'yes' if met else 'not measured' if measured is None else 'no'} |")
    return "\n".join(lines), all_met


def check_gate(expression, flats, default_servers):
    """Lines `ok …` or `FAIL …` for one gate. A figure that was not measured fails."""
    gate = GATE.match(expression.strip())
    if not gate:
        return [f"FAIL {expression}: not a gate; write [SERVER:]METRIC<=NUMBER[*SERVER:METRIC]"]
    lines = []
    for server in [gate["server"]] if gate["server"] else default_servers:
        measured = flats.get(server, {}).get(gate["metric"])
        factor = flats.get(gate["peer"], {}).get(gate["peer_metric"]) if gate["peer"] else 1
        bound = None if factor is None else float(gate["value"]) * factor
        good = measured is not None and bound is not None and OPERATORS[gate["op"]](measured, bound)
        lines.append(f"{'ok  ' if good else 'FAIL'} {server}: {gate['metric']} = {number(measured)}, "
                     f"asked {gate['op']} {number(bound)}")
    return lines or [f"FAIL {expression}: no server was measured"]
