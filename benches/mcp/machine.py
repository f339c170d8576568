"""The machine under the benchmark: processes, CPU and memory accounting, raw commands."""
from __future__ import annotations

import collections
import os
import re
import select
import shutil
import signal
import statistics
import time

now = time.perf_counter
HARNESS = os.getpid()
DIRECT_CHILDREN: set[int] = set()  # waited for by their Popen, never by reap()

# cpu: the process itself; tree_cpu: and the children it has waited for. Seconds, bytes.
Process = collections.namedtuple("Process", "parent state cpu tree_cpu rss")


def process_table():
    """{pid: Process} of the whole machine."""
    tick, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    table = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open(f"/proc/{name}/stat").read().rpartition(")")[2].split()
        except OSError:
            continue  # gone meanwhile
        user, system, waited_user, waited_system = map(int, fields[11:15])
        table[int(name)] = Process(int(fields[1]), fields[0], (user + system) / tick,
                                   (user + system + waited_user + waited_system) / tick, int(fields[21]) * page)
    return table


def my_descendants():
    """{pid: Process} of the live processes below the harness."""
    table = process_table()
    children = collections.defaultdict(list)
    for pid, process in table.items():
        children[process.parent].append(pid)
    found, todo = {}, [HARNESS]
    while todo:
        for pid in children[todo.pop()]:
            todo.append(pid)
            if table[pid].state != "Z":
                found[pid] = table[pid]
    return found


def reap():
    """Collect the orphans that were handed to us as subreaper."""
    for pid, process in process_table().items():
        if process.parent == HARNESS and process.state == "Z" and pid not in DIRECT_CHILDREN:
            try:
                os.waitpid(pid, os.WNOHANG)
            except OSError:
                pass


def kill_leftovers():
    """Kill every descendant by pid; return the command lines of what was still there."""
    left = []
    for _ in range(5):
        alive = my_descendants()
        if not alive:
            break
        for pid in alive:
            try:
                left.append(open(f"/proc/{pid}/cmdline", "rb").read().replace(b"\0", b" ").decode(errors="replace")[:120])
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.2)
        reap()
    return left


def memory_mib():
    """Resident and proportional memory of all descendants. PSS counts shared pages once."""
    alive = my_descendants()
    pss = 0
    for pid in alive:
        try:
            rollup = open(f"/proc/{pid}/smaps_rollup").read()
            pss += int(re.search(r"^Pss:\s+(\d+)", rollup, re.M)[1]) * 1024
        except (OSError, TypeError):
            pass  # another uid's process: readable by root only
    return {"rss": sum(process.rss for process in alive.values()) / 2**20, "pss": pss / 2**20, "processes": len(alive)}


def idle_python_mib():
    """Private memory of each waiting python of a server, without those that have mapped numpy: [smallest, ...]."""
    found = []
    for pid in my_descendants():
        try:
            if not os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith("python"):
                continue
            if "numpy" in open(f"/proc/{pid}/maps").read():
                continue
            rollup = open(f"/proc/{pid}/smaps_rollup").read()
        except OSError:
            continue  # gone, or another uid's
        found.append(sum(map(int, re.findall(r"^Private_\w+:\s+(\d+)", rollup, re.M))) / 1024)
    return sorted(found)


def own_cpu(pid):
    """CPU seconds of a process' own threads, without its children."""
    tasks = f"/proc/{pid}/task"
    return sum(int(open(f"{tasks}/{task}/schedstat").read().split()[0]) for task in os.listdir(tasks)) / 1e9


class CpuMeter:
    """CPU seconds of everything the harness started, without the harness.

    A cgroup of our own is exact (v1 cpuacct or v2). Without the right to make one, /proc is summed:
    10 ms steps, and children of a parent that ignores SIGCHLD are missed.
    """

    def __init__(self, extra_cgroups=()):
        self.extra, self.group, self.parent, self.source = list(extra_cgroups), None, None, "proc"
        for parent, source in (("/sys/fs/cgroup/cpuacct", "cgroup v1"), (self.own_v2_group(), "cgroup v2")):
            group = f"{parent}/mcp-bench-{HARNESS}"
            try:
                os.mkdir(group)
                open(group + "/cgroup.procs", "w").write(str(HARNESS))
            except OSError:
                if os.path.isdir(group):
                    os.rmdir(group)
                continue
            self.group, self.parent, self.source = group, parent, source
            break

    @staticmethod
    def own_v2_group():
        mine = next((line[3:].strip() for line in open("/proc/self/cgroup") if line.startswith("0::")), "/")
        top = "/sys/fs/cgroup/unified" if os.path.isdir("/sys/fs/cgroup/unified") else "/sys/fs/cgroup"
        return (top + mine).rstrip("/")

    @staticmethod
    def usage(group):
        try:
            return int(open(group + "/cpuacct.usage").read()) / 1e9
        except OSError:
            pass
        try:
            return int(re.search(r"usage_usec (\d+)", open(group + "/cpu.stat").read())[1]) / 1e6
        except (OSError, TypeError):
            return 0.0

    def seconds(self):
        extra = sum(map(self.usage, self.extra))
        if self.group:
            return self.usage(self.group) + extra - time.process_time()
        times, alive = os.times(), my_descendants().values()
        return times.children_user + times.children_system + sum(process.tree_cpu for process in alive) + extra

    def close(self):
        if self.group:
            try:
                open(self.parent + "/cgroup.procs", "w").write(str(HARNESS))
                os.rmdir(self.group)
            except OSError:
                pass


# ---------------------------------------------------------------- raw commands and the baseline

def run_command(command, env=None, timeout=60.0):
    """(seconds, stdout) of one command; posix_spawn, so that the harness adds little of its own."""
    read_end, write_end = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    start = now()
    pid = os.posix_spawnp(command[0], command, {**os.environ, **(env or {})}, file_actions=[
        (os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, write_end, 1), (os.POSIX_SPAWN_DUP2, null, 2)])
    DIRECT_CHILDREN.add(pid)
    os.close(write_end)
    os.close(null)
    output, deadline = [], start + timeout
    while select.select([read_end], [], [], max(0, deadline - now()))[0]:
        chunk = os.read(read_end, 65536)
        if not chunk:
            break
        output.append(chunk)
    else:
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    seconds = now() - start
    DIRECT_CHILDREN.discard(pid)
    os.close(read_end)
    return seconds, b"".join(output).decode(errors="replace")


def summary(values):
    if not values:
        return None
    ordered = sorted(values)
    rank = lambda share: ordered[round(share * (len(ordered) - 1))]
    return {"n": len(ordered), "p50": statistics.median(ordered), "p90": rank(.9), "p99": rank(.99),
            "mean": statistics.fmean(ordered), "min": ordered[0], "max": ordered[-1]}


class Baseline:
    """The raw commands that are run between the calls of a timed loop: python and true; for JavaScript also node."""

    def __init__(self, python, meter):
        self.commands = {"python": [python, "-c", "print(1)"], "true": ["/bin/true"]}
        if shutil.which("node"):
            self.commands["node"] = [shutil.which("node"), "-e", "console.log(1)"]
        self.meter = meter
        self.everything = {"python": [], "true": []}
        self.restart()

    def restart(self, node=False):
        """Forget the samples: a new loop begins."""
        self.names = [name for name in self.commands if node or name != "node"]
        self.wall, self.cpu = {name: [] for name in self.names}, {name: [] for name in self.names}
        for _ in range(2):
            self.sample()

    def sample(self):
        for name in self.names:
            command, before = self.commands[name], self.meter.seconds()
            seconds, output = run_command(command)
            if name != "true" and output.strip() != "1":
                raise RuntimeError(f"the baseline {command} printed {output!r}")
            self.wall[name].append(seconds)
            self.cpu[name].append(self.meter.seconds() - before)
            self.everything.setdefault(name, []).append(seconds)

    def cpu_spent(self):
        return sum(map(sum, self.cpu.values()))

    def denominators(self):
        """Denominators of the loop; CPU is a mean, like the CPU per call it divides (and /proc counts in 10 ms steps)."""
        return {**{name: statistics.median(samples) for name, samples in self.wall.items()},
                "python_cpu": max(statistics.fmean(self.cpu["python"]), 1e-6)}
