# stdin: "x"
import fcntl, os
for n in (0, 1, 2):
    f = fcntl.fcntl(n, fcntl.F_GETFL)
    print(f & os.O_ACCMODE, bool(f & os.O_APPEND), bool(f & os.O_NONBLOCK), fcntl.fcntl(n, fcntl.F_GETFD))
