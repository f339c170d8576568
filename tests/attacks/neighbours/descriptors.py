# Descriptors on their way, as many as can be, and again when they are gone.
import array, socket
while True:
    kept = []
    try:
        while True:
            pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            kept.append(pair)
            for _ in range(20):
                pair[0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [pair[1].fileno()] * 200))])
    except OSError:
        pass
