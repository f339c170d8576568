# The tools of upstream servers for Python: `server.tool(name=value)` is a plain call, and is awaited where an event loop
# runs. Python imports the first file of this name before the program, and this one then imports the next of that name. A
# pre-started interpreter has imported that one already, and runs this file as `binding`.
import builtins
import sys

SERVERS = {servers}


class ToolError(RuntimeError):
    """A tool that failed or could not be called: `.server`, `.tool`, `.message` and `.kind` say which and why."""

    def __init__(self, message, kind='tool', server='', tool=''):
        super().__init__(message)
        self.message, self.kind, self.server, self.tool = message, kind, server, tool


ToolError.__module__ = 'builtins'


def request(asked):
    import json
    body = json.dumps(asked).encode()
    return b'POST / HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s' % (len(body), body)


def value(answer):
    import json
    body = answer.partition(b'\r\n\r\n')[2]
    if not body:
        raise ToolError('nobody answers any more', 'unavailable')
    said = json.loads(body)
    if 'error' in said:
        raise ToolError(**said['error'])
    return said['value']


def ask(asked):
    import socket
    message, pieces = request(asked), []
    try:
        with socket.create_connection(('127.0.0.1', {port})) as line:
            line.sendall(message)
            while piece := line.recv(1 << 20):
                pieces.append(piece)
    except OSError:
        pieces.clear()
    return value(b''.join(pieces))


async def ask_async(asked):
    import asyncio
    message, answer = request(asked), b''
    try:
        reader, writer = await asyncio.open_connection('127.0.0.1', {port})
        try:
            writer.write(message)
            await writer.drain()
            answer = await reader.read()
        finally:
            writer.close()
    except OSError:
        pass
    return value(answer)


def call(server, tool, arguments):
    asked = {'server': server, 'tool': tool, 'arguments': arguments}
    events = sys.modules.get('asyncio.events')
    is_async = events is not None and events._get_running_loop() is not None
    return ask_async(asked) if is_async else ask(asked)


class Tool:
    def __init__(self, server, name):
        self.server, self.__name__ = server, name

    def __call__(self, *given, **named):
        if given and (named or len(given) > 1 or not isinstance(given[0], dict)):
            raise TypeError(f'{self.server}.{self.__name__} takes its arguments by name, or as one dict')
        return call(self.server, self.__name__, given[0] if given else named)

    def __repr__(self):
        return f'<tool {self.server}.{self.__name__}>'


class Server:
    def __init__(self, name):
        self.__name__ = name

    def __getattr__(self, tool):
        if tool.startswith('__'):
            raise AttributeError(tool)
        return Tool(self.__name__, tool)

    __getitem__ = __getattr__

    def __repr__(self):
        return f'<server {self.__name__}>'


class Mcp:
    """What the servers have in common."""

    class servers:
        pass

    @staticmethod
    def call(name, arguments=None):
        server, _, tool = name.partition('.')
        return call(server, tool, arguments or {})

    @staticmethod
    def help(server=''):
        return ask({'help': server})


def offer():
    offered = {name: Server(name) for name in SERVERS}
    for name, server in offered.items():
        setattr(Mcp.servers, name, server)
    for name, thing in {**offered, 'mcp': Mcp(), 'ToolError': ToolError}.items():
        if not hasattr(builtins, name):
            setattr(builtins, name, thing)
    if __name__ != 'sitecustomize':
        return
    own = __file__.rpartition('/')[0]
    sys.path[:] = [folder for folder in sys.path if folder != own]
    this = sys.modules.pop('sitecustomize')
    try:
        import sitecustomize
    except ImportError:
        sys.modules['sitecustomize'] = this


offer()
