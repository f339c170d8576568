# The tools of upstream servers for Python. `server.tool(name=value)` gives a value, and is awaited where an event loop runs; `mcp_server`,
# `mcp.servers.server` and `mcp.runtime` give whole results. Python imports the first file of this name before the program, and this one
# then imports the next of that name. A pre-started interpreter has run it before as `binding`, and is told the servers by its prelude.
import builtins
import os
import sys

FILE = '/workspace/.home/.hotcell/sitecustomize.py'
# Where servers are called, what was asked already, and connections that nobody uses.
state = {'port': 0, 'tools': {}, 'idle': []}


class ToolError(RuntimeError):
    """A tool that failed or could not be called: `.server`, `.tool`, `.message`, `.details` and `.kind` say which and why."""

    def __init__(self, message, kind='tool', server='', tool='', details=None):
        super().__init__(message)
        self.message, self.kind, self.server, self.tool, self.details = message, kind, server, tool, details


ToolError.__module__ = 'builtins'


def connect():
    import socket
    idle = state['idle']
    while idle:
        process, line = idle.pop()
        try:
            # One that is open has nothing to read. A process that was forked has connections of its own.
            if process == os.getpid():
                line.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            line.close()
        except BlockingIOError:
            return line
        except OSError as error:
            import errno
            if error.errno in (errno.EBADF, errno.ENOTSOCK):
                # The program has closed it, and what has its number now is the program's own.
                line.detach()
            line.close()
    line = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        block(line, True)
        line.connect(('127.0.0.1', state['port']))
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        line.close()
        raise
    return line


def block(line, blocks):
    """Has a connection wait, or not: most do already as they should."""
    if line.gettimeout() != (None if blocks else 0):
        line.setblocking(blocks)


def keep(line):
    if len(state['idle']) < 8:
        state['idle'].append((os.getpid(), line))
    else:
        line.close()


def exchange(asked):
    """The steps of one question: bytes are to be sent, a number is how many to receive."""
    import json
    body = json.dumps(asked).encode()
    yield b'POST / HTTP/1.1\r\nHost: mcp\r\nContent-Length: %d\r\n\r\n%s' % (len(body), body)
    head = b''
    while b'\r\n\r\n' not in head:
        piece = yield 1 << 13
        if not piece:
            raise OSError
        head += piece
    head, _, body = head.partition(b'\r\n\r\n')
    length = head.lower().partition(b'\r\ncontent-length:')[2].partition(b'\r\n')[0]
    left, pieces = int(length) - len(body), [body]
    while left > 0:
        piece = yield min(left, 1 << 20)
        if not piece:
            raise OSError
        pieces.append(piece)
        left -= len(piece)
    return json.loads(b''.join(pieces))


def nobody(asked):
    names = {name: asked.get(name, '') for name in ('server', 'tool')}
    return ToolError('nobody answers any more', 'unavailable', **names)


def ask(asked):
    line = None
    try:
        line = connect()
        block(line, True)
        steps = exchange(asked)
        step = next(steps)
        while True:
            step = steps.send(line.sendall(step) if isinstance(step, bytes) else line.recv(step))
    except StopIteration as end:
        keep(line)
        line = None
        answer = end.value
    except OSError:
        raise nobody(asked) from None
    finally:
        if line is not None:
            line.close()
    return value(answer, asked)


def rehearse_call():
    import socket
    ours, theirs = socket.socketpair()
    asked = {'server': 'x', 'tool': 'x', 'arguments': {'x': 'x'}}
    for said in (b'"x"', b'"1"', b'"{"'):
        steps = exchange(asked)
        ours.sendall(next(steps))
        theirs.sendall(b'HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{"text":%s}' % said)
        try:
            steps.send(None)
            steps.send(ours.recv(1 << 13))
        except StopIteration as end:
            value(end.value, asked)
    socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()
    # A second call finds an open connection.
    keep(ours)
    connect().close()
    theirs.close()


async def ask_async(asked):
    import asyncio
    loop, line = asyncio.get_running_loop(), None
    try:
        line = connect()
        block(line, False)
        steps = exchange(asked)
        step = next(steps)
        while True:
            is_sent = isinstance(step, bytes)
            step = steps.send(await (loop.sock_sendall(line, step) if is_sent else loop.sock_recv(line, step)))
    except StopIteration as end:
        keep(line)
        line = None
        answer = end.value
    except OSError:
        raise nobody(asked) from None
    finally:
        if line is not None:
            line.close()
    return value(answer, asked)


def either(asked):
    """The answer; where an event loop runs, what is awaited for it."""
    events = sys.modules.get('asyncio.events')
    is_async = events is not None and events._get_running_loop() is not None
    if not is_async:
        return ask(asked)
    waiting = ask_async(asked)
    if 'tool' in asked:
        # Python names it where nobody awaits it.
        waiting.__qualname__ = f"{asked.get('server')}.{asked['tool']}"
    return waiting


# To see that a text is none is quicker than to try.
JSON_BEGINS = tuple('{["-0123456789tfn \t\r\n')


def no_constant(name):
    raise ValueError(name)


def value(answer, asked):
    if 'error' in answer:
        raise ToolError(**answer['error'])
    if 'text' in answer:
        text = answer['text']
        if text[:1] not in JSON_BEGINS:
            return text
        import json
        try:
            return json.loads(text, parse_constant=no_constant)
        except (ValueError, RecursionError):
            return text
    if 'parts' in answer:
        return [made(asked['server'], part) for part in answer['parts']]
    return Result(answer['result']) if 'result' in answer else answer['value']


class Result(dict):
    """A whole result. It is there already, and may be awaited all the same."""

    def __await__(self):
        return self
        yield

    def send(self, _):
        raise StopIteration(self)

    def throw(self, error, *_):
        raise error

    def close(self):
        pass


def made(server, part):
    """What a part of a result is to the program; one that makes no sense stays as it is."""
    if not isinstance(part, dict):
        return part
    if part.get('type') == 'text' and isinstance(part.get('text'), str):
        return part['text']
    try:
        return File(server, part)
    except (TypeError, ValueError, AttributeError):
        return part


class File:
    """A picture, a sound or a file that a tool gave: `.mime`, `.name`, `.uri`, `.size`, `.bytes()`, `.text()`, `.save(path)`."""

    def __init__(self, server, part):
        import binascii
        inner = part.get('resource', part)
        data = inner.get('data', inner.get('blob'))
        self.kind, self.server = part.get('type', 'resource'), server
        self.mime, self.uri, self.name = inner.get('mimeType'), inner.get('uri'), inner.get('name')
        self._bytes = binascii.a2b_base64(data) if data is not None else None
        if 'text' in inner:
            self._bytes = inner['text'].encode()
        if self._bytes is None and not isinstance(self.uri, str):
            raise ValueError('neither data nor an address')
        self.size = inner.get('size') if self._bytes is None else len(self._bytes)

    def bytes(self):
        # What is only named is read when it is wanted.
        if self._bytes is None:
            found = ask({'ask': 'read', 'server': self.server, 'about': self.uri})
            self._bytes = b''.join(it.bytes() if isinstance(it, File) else it.encode() for it in found)
            self.size = len(self._bytes)
        return self._bytes

    def text(self):
        return self.bytes().decode()

    def save(self, path):
        with open(path, 'wb') as file:
            file.write(self.bytes())
        return path

    @property
    def _repr_png_(self):
        # A last value that has this is shown.
        if self._bytes is None or self.mime not in ('image/png', 'image/jpeg'):
            raise AttributeError('_repr_png_')
        return self.bytes

    def _repr_mimebundle_(self):
        return {self.mime: self.bytes()} if self.mime else {}

    def __repr__(self):
        return f'<{self.kind} {self.mime or ""} {self.uri or self.name or ""}, {self.size} bytes>'.replace('  ', ' ').replace(' ,', ',')
