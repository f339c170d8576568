"""What is measured: each section drives a server and gives its raw figures."""
from __future__ import annotations

import collections
import json
import os
import queue
import random
import re
import statistics
import string
import sys
import time

import sessions
import tools
from client import CALL_SECONDS, Server, failed, text_of
from machine import idle_python_mib, memory_mib, my_descendants, now, own_cpu, run_command, summary

SECTIONS = ("raw", "start", "warm", "js", "numpy", "pandas", "conc", "flow", "burst", "sleep8", "big", "timeout", "memory", "tools", "sessions")
LOOP_SECONDS = 45  # a timed loop stops here even when it has not made all its calls
SPIN_SECONDS = 12

# The answers are computed, so that no echo of the code can pass for a result.
HELLO = {"python": "print(6*7*1009)", "js": "console.log(6*7*1009)"}
HELLO_ANSWER = "42378"
UPPER = {"python": "print('%s'.upper())", "js": "console.log('%s'.toUpperCase())"}
SPIN = {"python": f"import time\nend=time.time()+{SPIN_SECONDS}\nwhile time.time()<end: pass",
        "js": f"const end=Date.now()+{SPIN_SECONDS}000;while(Date.now()<end){{}}"}
NUMPY = "import numpy; print(int(numpy.arange(1010).sum()))"
PANDAS = "import pandas; print(int(pandas.DataFrame({'a': range(1010)}).a.sum()))"
SUM_ANSWER = "509545"
TAGS = 100_000  # each program in flight multiplies a number of its own, from here on, by 1009
BIG = {"lines": "for _ in range(50000): print('#'*99)", "line": "print('#'*5000000)"}


def is_own(text, tag):
    """Whether an answer holds the product that its program computed, and that of no other program."""
    return {number for number in map(int, re.findall(r"\d{8,}", text)) if number % 1009 == 0} == {tag * 1009}


def say(text):
    print(text, file=sys.stderr, flush=True)


class Bench:
    def __init__(self, options, meter, baseline):
        self.options, self.meter, self.baseline, self.sections = options, meter, baseline, options.sections

    def wants(self, *sections):
        return any(section in self.sections for section in sections)

    def cpu_since(self, begun, spent_by_baseline):
        return self.meter.seconds() - begun - (self.baseline.cpu_spent() - spent_by_baseline)

    def starts(self, config):
        """Fresh processes: spawn to initialize answer, and to the first result."""
        to_answer, to_result, cpu, error = [], [], [], None
        self.baseline.restart()
        for _ in range(self.options.starts):
            self.baseline.sample()
            begun = self.meter.seconds()
            server = Server(config, self.options.logs)
            try:
                to_answer.append(server.initialize())
                _, text, bad = server.call("python", HELLO["python"])
                if not bad and HELLO_ANSWER in text:
                    to_result.append(now() - server.started)
                    cpu.append(self.meter.seconds() - begun)
                else:
                    error = text[:300]
            finally:
                ended = server.close()
        return {"initialize": summary(to_answer), "result": summary(to_result), "cpu": summary(cpu), "error": error,
                "ended": ended, "base": self.baseline.denominators()}

    def timed_loop(self, server, language, code, answer, count, every=1):
        """`count` calls one after another, the baseline before every `every`-th of them."""
        times, wrong, error = [], 0, None
        self.baseline.restart(node=language == "js")
        begun, spent, calls, started = self.meter.seconds(), self.baseline.cpu_spent(), 0, now()
        own = own_cpu(server.process.pid)
        while calls < count and now() - started < LOOP_SECONDS and not (wrong >= 3 and not times):
            if calls % every == 0:
                self.baseline.sample()
            seconds, text, bad = server.call(language, code)
            calls += 1
            if bad or answer not in text:
                wrong, error = wrong + 1, error or text[:300]
            else:
                times.append(seconds)
            if seconds is None:
                break
        return {"t": summary(times), "cpu": self.cpu_since(begun, spent) / calls, "wrong": wrong, "error": error,
                "own": seconds and (own_cpu(server.process.pid) - own) / calls, "base": self.baseline.denominators()}

    def in_flight(self, server, language, rounds=6):
        """`width` different programs at once over the one connection; is each answer its own?"""
        width, batches, verdicts, example = self.options.width, [], collections.Counter(), None
        self.baseline.restart()
        begun, spent, started = self.meter.seconds(), self.baseline.cpu_spent(), now()
        for _ in range(rounds):
            self.baseline.sample()
            tags = ["".join(random.choices(string.ascii_lowercase, k=12)) for _ in range(width)]
            sent = last = now()
            waiters = [server.begin("tools/call", server.call_params(language, UPPER[language] % tag))[1] for tag in tags]
            for tag, waiter in zip(tags, waiters):
                try:
                    arrived, message = waiter.get(timeout=max(1, CALL_SECONDS - (now() - sent)))
                except queue.Empty:
                    verdicts["lost"] += 1
                    continue
                last, text = max(last, arrived), text_of(message)
                others = any(other.upper() in text for other in tags if other != tag)
                verdict = "mixed" if others else "right" if tag.upper() in text else "missing"
                verdicts[verdict] += 1
                if verdict != "right":
                    example = example or f"asked {tag}, got {text.strip()[:120]!r}"
            batches.append(last - sent)
            if now() - started > LOOP_SECONDS:
                break
        calls = len(batches) * width
        return {"calls": calls, **verdicts, "right_share": verdicts["right"] / calls, "example": example,
                "calls_per_s": width / statistics.median(batches), "cpu": self.cpu_since(begun, spent) / calls,
                "base": self.baseline.denominators()}

    def flow(self, server, count):
        """`count` different programs, always `width` of them in flight: what it can sustain."""
        answers, asked, right, sent, example = queue.Queue(), {}, 0, 0, None
        self.baseline.restart()
        for _ in range(5):
            self.baseline.sample()
        begun, spent, started = self.meter.seconds(), self.baseline.cpu_spent(), now()
        while sent < count or asked:
            if sent < count and len(asked) < self.options.width and now() - started < LOOP_SECONDS:
                code = f"print({TAGS + sent} * 1009)"
                asked[server.begin("tools/call", server.call_params("python", code), answers)[0]] = TAGS + sent
                sent += 1
                continue
            try:
                message = answers.get(timeout=CALL_SECONDS)[1]
                tag = asked.pop(message["id"])
            except (queue.Empty, KeyError):
                break  # no answer, or the server is gone: the rest is not right
            if is_own(text_of(message), tag):
                right += 1
            else:
                example = example or f"asked for {tag * 1009}, got {text_of(message).strip()[:120]!r}"
        return {"calls": sent, "right_share": right / sent, "example": example, "calls_per_s": sent / (now() - started),
                "cpu": self.cpu_since(begun, spent) / sent, "base": self.baseline.denominators()}

    def burst(self, server, rounds, size=32):
        """`size` different programs at once, after a pause in which a pool can fill: until all are answered."""
        times, right = [], 0
        self.baseline.restart()
        for turn in range(rounds):
            self.baseline.sample()
            time.sleep(.5)
            tags = range(TAGS + turn * size, TAGS + (turn + 1) * size)
            sent = last = now()
            waiters = [server.begin("tools/call", server.call_params("python", f"print({tag} * 1009)"))[1] for tag in tags]
            for tag, waiter in zip(tags, waiters):
                try:
                    arrived, message = waiter.get(timeout=CALL_SECONDS)
                except queue.Empty:
                    continue
                last, right = max(last, arrived), right + is_own(text_of(message), tag)
            times.append(last - sent)
        return {"t": summary(times), "right_share": right / (rounds * size), "base": self.baseline.denominators()}

    def sleepers(self, server):
        """Eight programs that sleep one second: do they wait for each other?"""
        sent = now()
        waiters = [server.begin("tools/call", server.call_params(
            "python", f"import time; time.sleep(1); print('SLEPT' + str({n}))"))[1] for n in range(8)]
        right = 0
        for n, waiter in enumerate(waiters):
            try:
                text = text_of(waiter.get(timeout=max(.5, 40 - (now() - sent)))[1])
            except queue.Empty:
                continue
            right += re.findall(r"SLEPT\d", text) == [f"SLEPT{n}"]
        return {"seconds": now() - sent, "right": right}

    def big_output(self, server, code):
        """5 MB of stdout: how long, and how much of it comes back."""
        times, kept, error = [], 0, None
        self.baseline.restart()
        for _ in range(3):
            self.baseline.sample()
            seconds, text, bad = server.call("python", code, timeout=45)
            kept = text.count("#")
            if bad:
                error = text[:200]
            else:
                times.append(seconds)
            if seconds is None or seconds > 8:
                break
        return {"t": summary(times), "kept_bytes": kept, "error": error, "base": self.baseline.denominators()}

    def endless(self, config, language):
        """A spinning program: a 2 s limit if the tool takes one, otherwise a cancel after 4 s."""
        server = Server(config, self.options.logs)
        try:
            server.initialize()
            server.call(language, HELLO[language])
            processes = len(my_descendants())
            has_limit = bool(config[language].get("timeout_arg"))
            request_id, waiter, sent = server.begin(
                "tools/call", server.call_params(language, SPIN[language], 2 if has_limit else None))
            time.sleep(.3)
            out = {"has_limit": has_limit, "ping_s": server.request("ping", {}, 1.5)[0], "returned_s": None}
            try:
                arrived, message = waiter.get(timeout=(SPIN_SECONDS if has_limit else 4) - (now() - sent))
                out.update(returned_s=arrived - sent, failed=failed(message), text=text_of(message)[:200])
            except queue.Empty:
                server.notify("notifications/cancelled", {"requestId": request_id, "reason": "benchmark"})
            time.sleep(1)
            before = my_descendants()
            time.sleep(1)
            after = my_descendants()
            out["burning"] = sum(after[pid].cpu - before[pid].cpu > .03 for pid in after if pid in before)
            out["extra_processes"] = len(after) - processes
            seconds, text, bad = server.call(language, HELLO[language], timeout=SPIN_SECONDS + 25)
            out.update(next_call_s=seconds, next_call_right=not bad and HELLO_ANSWER in text)
        finally:
            ended = server.close()
        return {**out, **ended}

    def measure(self, config):
        """All wanted sections of one server; a section that raises is recorded, not fatal."""
        result = {"name": config["name"], "load": os.getloadavg()}
        self.sections = config.get("sections", self.options.sections)

        def section(key, action, *arguments, **keywords):
            started = now()
            try:
                result[key] = action(*arguments, **keywords)
                say(f"  {key:10} {now() - started:6.1f} s")
            except Exception as error:  # a peer may break in any way
                result[key] = {"error": f"{type(error).__name__}: {error}"}
                say(f"  {key:10} FAILED {error}")

        if self.wants("start"):
            section("start", self.starts, config)
        if self.wants("warm", "js", "numpy", "pandas", "conc", "flow", "burst", "sleep8", "big", "memory"):
            section("main", self.measure_warm, config, section)
        if self.wants("tools"):
            section("tools", tools.measure, config, self.options.logs, max(10, self.options.n // 2))
        if self.wants("sessions"):
            section("sessions", sessions.measure, config, self.options.logs, max(10, self.options.n // 5), self.baseline)
        if self.wants("timeout"):
            for language in ("python", "js"):
                if language in config:
                    section("timeout_" + language, self.endless, config, language)
        return result

    def measure_warm(self, config, section):
        """The sections that share one long-lived server; memory before and after them."""
        server, count = Server(config, self.options.logs), self.options.n
        try:
            server.initialize()
            time.sleep(1.5)
            out = {"memory_idle": memory_mib()}
            server.call("python", HELLO["python"])
            if self.wants("memory"):
                # Whatever waits for the next call is there by now.
                time.sleep(2)
                out.update(memory_pooled=memory_mib(), idle_python=idle_python_mib())
            if self.wants("warm"):
                section("warm", self.timed_loop, server, "python", HELLO["python"], HELLO_ANSWER, count)
                section("dense", self.timed_loop, server, "python", HELLO["python"], HELLO_ANSWER, count, every=10)
            if self.wants("js") and "js" in config:
                section("js", self.timed_loop, server, "js", HELLO["js"], HELLO_ANSWER, count)
            if self.wants("numpy"):
                section("numpy", self.timed_loop, server, "python", NUMPY, SUM_ANSWER, max(5, count // 5))
            if self.wants("pandas"):
                section("pandas", self.timed_loop, server, "python", PANDAS, SUM_ANSWER, max(5, count // 5))
            if self.wants("conc"):
                section("conc", self.in_flight, server, "python")
                if "js" in config:
                    section("conc_js", self.in_flight, server, "js", rounds=4)
            if self.wants("flow"):
                section("flow", self.flow, server, max(2 * self.options.width, 4 * count))
            if self.wants("burst"):
                section("burst", self.burst, server, max(3, count // 10))
            if self.wants("sleep8"):
                section("sleep8", self.sleepers, server)
            if self.wants("big"):
                for shape, code in BIG.items():
                    section("big_" + shape, self.big_output, server, code)
            time.sleep(1)
            out.update(memory_after=memory_mib(), died=server.exited.is_set(), stdout_noise=server.noise)
        finally:
            ended = server.close()
        return {**out, **ended}

    def measure_raw(self, commands):
        """Commands without MCP, round-robin with the baseline; `library` entries time themselves."""
        plain = [entry for entry in commands if not entry.get("library")]
        wall, cpu, out = collections.defaultdict(list), collections.defaultdict(list), []
        self.baseline.restart()
        for turn in range(self.options.raw_n + 1):
            self.baseline.sample()
            for entry in plain:
                before = self.meter.seconds()
                try:
                    seconds, output = run_command(entry["command"], entry.get("env"))
                except OSError:
                    continue  # cannot be started: its row will say FAIL
                if turn and output.strip() == entry.get("expect", "1"):  # the first turn warms the caches
                    wall[entry["name"]].append(seconds)
                    cpu[entry["name"]].append(self.meter.seconds() - before)
        for entry in plain:
            out.append({"name": entry["name"], "t": summary(wall[entry["name"]]), "cpu": summary(cpu[entry["name"]])})
        for entry in commands:
            if entry.get("library"):
                try:
                    samples = json.loads(run_command(entry["command"], timeout=120)[1])
                except ValueError:
                    samples = {"failed": []}
                out += [{"name": f"{entry['name']}: {key}", "t": summary(values)} for key, values in samples.items()]
        base = self.baseline.denominators()
        return [{**row, "base": base} for row in out]
