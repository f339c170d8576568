# What the kernel counts for a user: inotify instances and watches, epoll watches, pages of pipes, pending signals.
import ctypes, fcntl, os, select, signal, time
libc = ctypes.CDLL(None, use_errno=True)
queues = []
while (queue := libc.inotify_init1(0)) >= 0:
    queues.append(queue)
for number in range(4000):
    open(f'/tmp/{number}', 'w').close()
    for queue in queues:
        libc.inotify_add_watch(queue, f'/tmp/{number}'.encode(), 0xfff)
pipes = []
try:
    while len(pipes) < 300:
        pipes.append(os.pipe())
        fcntl.fcntl(pipes[-1][1], 1031, 1 << 20)
except OSError:
    pass
polls = []
try:
    while True:
        polls.append(select.epoll())
        for pair in pipes:
            polls[-1].register(pair[0], select.EPOLLIN)
except OSError:
    pass
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
while libc.sigqueue(os.getpid(), signal.SIGRTMIN, 0) == 0:
    pass
while True:
    time.sleep(1)
