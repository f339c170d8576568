#!/usr/bin/env python3
"""The kinds of sandboxes side by side, as ratios to `python3 -c 'print(1)'` in the same loop. `scripts/bench providers` runs this.

- warm: a call over MCP that finds a pre-started sandbox, when there has been time to make one
- cold: `hotcell run`; for a container engine also `podman run` itself
- memory: what a sandbox that waits takes (Pss, with the engine's process beside it)
- rate: runs in a second over MCP with four in flight

Exit 1 if a goal is missed. A provider that this machine does not have is left out, aloud.
"""
import json, os, statistics, subprocess, sys, time

WARM = 0.3
COLD = 1.2
PLAIN = ["/usr/bin/python3", "-c", "print(1)"]
# `runsc` may be elsewhere.
RUNSC = os.path.dirname(os.environ.get("HOTCELL_RUNSC", ""))
ENVIRONMENT = {"PATH": f"/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:{RUNSC}", "HOME": os.environ.get("HOME", "/")}


class Server:
    """`hotcell serve`, one call at a time."""

    def __init__(self, hotcell, provider):
        command = [hotcell, "serve", "--no-record", "--isolation", provider]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        self.next = 0
        opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.request("initialize", opening)

    def send(self, method, params):
        self.next += 1
        message = {"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.send(method, params)
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.next and "method" not in answer:
                return answer["result"]
        sys.exit("the server ended")

    def run(self):
        arguments = {"code": "print(1)", "language": "python"}
        result = self.request("tools/call", {"name": "run", "arguments": arguments})
        if result["structuredContent"]["stdout"] != "1\n":
            sys.exit(f"a wrong answer: {result}")

    def rate(self, runs, in_flight=4):
        arguments = {"name": "run", "arguments": {"code": "print(1)", "language": "python"}}
        start = time.perf_counter()
        sent = done = 0
        while done < runs:
            while sent < runs and sent - done < in_flight:
                self.send("tools/call", arguments)
                sent += 1
            answer = json.loads(self.process.stdout.readline())
            if "method" not in answer:
                if answer["result"]["structuredContent"]["stdout"] != "1\n":
                    sys.exit(f"a wrong answer: {answer}")
                done += 1
        return runs / (time.perf_counter() - start)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def took(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def call(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
    if done.stdout.strip() != b"1":
        sys.exit(f"{command}: {done.stderr.decode()}")


def processes():
    """Every process with its parent."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                found[int(pid)] = int(file.read().rpartition(") ")[2].split()[1])
        except OSError:
            pass
    return found


def pss(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def waiting(server, provider):
    """MiB for each sandbox that waits, and how many do."""
    parents = processes()
    roots = {pid for pid, parent in parents.items() if parent == server}
    count = len(roots)
    if provider in ("podman", "docker"):
        own = f"label=hotcell.server={server}."
        listed = subprocess.run([provider, "ps", "--format", "{{.ID}} {{.Labels}}"], stdout=subprocess.PIPE, text=True).stdout
        ids = [line.split()[0] for line in listed.splitlines() if f"hotcell.server:{server}." in line or own[6:] in line]
        firsts = [int(subprocess.run([provider, "inspect", "--format", "{{.State.Pid}}", it], stdout=subprocess.PIPE, text=True).stdout) for it in ids]
        roots, count = {parents[pid] for pid in firsts}, len(firsts)
    if provider == "jail":
        own = os.readlink("/proc/self/ns/pid")
        count = sum(os.readlink(f"/proc/{pid}/ns/pid") != own for pid in roots)
    below, todo = set(), list(roots)
    while todo:
        pid = todo.pop()
        below.add(pid)
        todo += [it for it, parent in parents.items() if parent == pid]
    return sum(map(pss, below)) / 1024 / max(count, 1), count


def by_hand(engine):
    """The engine's own command for the same program, with the image that hotcell has made."""
    runtime = ["--runtime=runc"] if engine == "podman" and os.path.isdir("/sys/fs/cgroup/unified") else []
    images = subprocess.run([engine, "images", "--format", "{{.Repository}}:{{.Tag}}"], stdout=subprocess.PIPE, text=True)
    image = next(it for it in images.stdout.split() if "hotcell-host:" in it)
    return [engine, "run", "--rm", "--network=none", "--read-only", "--cap-drop=ALL", "--ulimit=nofile=1024:1024",
            "--ulimit=nproc=1000:1000", "--volume=/usr:/usr:ro", *runtime, image, *PLAIN]


def main():
    hotcell, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    is_missed = False
    print(f"medians of {rounds} rounds, as ratios to `python3 -c 'print(1)'` in the same loop")
    for provider, pause in [("jail", 0.2), ("podman", 1.5), ("docker", 1.5), ("gvisor", 1.5)]:
        run = [hotcell, "run", "--no-record", "--isolation", provider, "-l", "python", "-c", "print(1)"]
        first = subprocess.run(run, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
        if first.stdout != b"1\n":
            print(f"  {provider}: left out: {first.stderr.decode().splitlines()[:1]}")
            continue
        server = Server(hotcell, provider)
        server.run()
        times = {"warm": [], "cold": [], "plain": []}
        engine = by_hand(provider) if provider in ("podman", "docker") else None
        if engine:
            times["engine"] = []
        for _ in range(rounds):
            # Time for another to be made.
            time.sleep(pause)
            times["warm"].append(took(server.run))
            times["plain"].append(took(lambda: call(PLAIN)))
            times["cold"].append(took(lambda: call(run)))
            if engine:
                times["engine"].append(took(lambda: call(engine)))
        time.sleep(pause)
        memory, count = waiting(server.process.pid, provider)
        rate = server.rate(400 if provider == "jail" else 24)
        server.end()
        middle = {name: statistics.median(all) for name, all in times.items()}
        warm, cold = middle["warm"] / middle["plain"], middle["cold"] / middle["plain"]
        line = f"  {provider}: plain {middle['plain'] * 1e3:.1f} ms; warm {warm:.3f} (goal {WARM}); cold {cold:.2f}"
        line += f"; {memory:.0f} MiB for each of {count} that wait; {rate:.1f} runs/s"
        is_missed |= warm > WARM
        if engine:
            ratio = middle["cold"] / middle["engine"]
            line += f", which is {ratio:.2f} x `{provider} run` (goal {COLD})"
            is_missed |= ratio > COLD
        print(line)
    sys.exit(is_missed)


main()
