# files: {"socket.py": "mine = 1\n", "struct.py": "mine = 2\n", "pickle.py": "mine = 3\n", "selectors.py": "mine = 4\n"}
import socket, struct, pickle, selectors
print(socket.mine, struct.mine, pickle.mine, selectors.mine)
