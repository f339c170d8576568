import socket
a, b = socket.socketpair()
a.sendall(b"hi"); print(b.recv(10))
