#!/usr/bin/env python3
"""What programs cost that begin with packages which hotcell has installed, while a sandbox waits that has imported them. `scripts/bench packages` runs this.

- numpy and pandas: to `python3 -c 'print(1)'` in the same loop
- a figure of matplotlib, which comes back: what it takes above plain Python that has done the same import and draws the same, in units of `python3 -c 'print(1)'`

It installs them from PyPI, for a home of its own. Exit 1 if a goal is missed.
"""
import glob, os, statistics, subprocess, sys, tempfile, time

from second_run import Server
from shell import ONE, PYTHON, took

NUMPY = "import numpy\nprint(int(numpy.arange(4).sum()))"
PANDAS = "import pandas\nprint(int(pandas.DataFrame({'a': [1, 2]}).a.sum()))"
FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 4])\nplt.savefig('figure.png')\nprint(1)"
# The same in plain Python, in a copy of a process that has done the import.
DRAWS = """import os, sys
import matplotlib.pyplot as plt
print('ready', flush=True)
for line in sys.stdin:
    if os.fork() == 0:
        plt.plot([1, 2, 4])
        plt.savefig(sys.argv[1])
        os._exit(0)
    os.wait()
    print(1, flush=True)
"""
GOALS = {"numpy": 0.15, "pandas": 0.25, "a figure, above plain drawing": 0.5}
# Until a sandbox has imported what the next program begins with.
PAUSE = {"numpy": 0.5, "pandas": 1.5, "figure": 1.5}


def main():
    hotcell, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    home = tempfile.mkdtemp(prefix="packages-")
    environment = {"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin", "MPLBACKEND": "agg"}
    server = Server([hotcell], environment)

    def ours(code):
        return lambda: server.run(code=code, language="python")

    def plain():
        subprocess.run([PYTHON, "-c", ONE], env=environment, stdin=subprocess.DEVNULL, capture_output=True)

    programs = {"numpy": NUMPY, "pandas": PANDAS, "figure": FIGURE}
    for code in programs.values():
        if not ours(code)():
            sys.exit("a program with packages failed: is PyPI in reach?")
    tree = glob.glob(f"{home}/.cache/hotcell/**/matplotlib", recursive=True)
    drawer = subprocess.Popen([PYTHON, "-c", DRAWS, f"{home}/figure.png"], env={**environment, "PYTHONPATH": os.path.dirname(tree[0])},
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    drawer.stdout.readline()

    def draw():
        drawer.stdin.write("draw\n")
        drawer.stdin.flush()
        drawer.stdout.readline()

    times = []
    for _ in range(rounds + 2):
        one = {"": took(plain), "draw": took(draw)}
        for name, code in programs.items():
            time.sleep(PAUSE[name])
            one[name] = took(ours(code))
        times.append(one)
    middle = {name: statistics.median(it[name] for it in times[2:]) for name in times[0]}
    drawer.stdin.close()
    server.process.stdin.close()
    server.process.wait()
    unit = middle[""]
    told = {"numpy": middle["numpy"] / unit, "pandas": middle["pandas"] / unit,
            "a figure, above plain drawing": (middle["figure"] - middle["draw"]) / unit}
    for name, ratio in told.items():
        print(f"{name:<32} {ratio:6.3f}  goal {GOALS[name]:.2f}  {'met' if ratio <= GOALS[name] else 'MISSED'}")
    return any(ratio > GOALS[name] for name, ratio in told.items())


if __name__ == "__main__":
    sys.exit(main())
