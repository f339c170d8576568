# A session in Python: it takes calls from a FIFO, runs each in `__main__`, and says when it is done. A call is `NUMBER BYTES INPUT\n` and
# its code, and is answered with `done NUMBER CODE BYTES\n` and the value of its last expression. Number 0 is ours, and is not answered.
# With 2 for INPUT it is no call: the worker makes a copy of itself, which answers with its process number and waits like the worker.
# Each call is a file of its own, so that tracebacks, `inspect` and whatever else reads sources find it; none of our frames is shown.
LIBRARY = '''
import json, os, re, sys
from collections.abc import MutableMapping
from types import ModuleType

class Vars(MutableMapping):
    """Values that the calls of a session share, whatever their language: all that JSON has. One that was changed in place is kept when it
    is assigned again."""

    def __init__(self, folder):
        self._folder = folder

    def _path(self, name):
        if not isinstance(name, str) or not re.fullmatch('[A-Za-z_][A-Za-z0-9_.-]{0,63}', name):
            raise ValueError(f'not a name for a value: {name!r}')
        return os.path.join(self._folder, name)

    def __getitem__(self, name):
        try:
            with open(self._path(name), encoding='utf-8') as file:
                return json.load(file)
        except FileNotFoundError:
            raise KeyError(name) from None

    def __setitem__(self, name, value):
        path, text = self._path(name), json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        if len(text) > 1 << 20:
            raise ValueError('a value has 1 MiB at most; write it to a file')
        os.makedirs(self._folder, exist_ok=True)
        with open(path + '~', 'wb') as file:
            file.write(text)
        os.replace(path + '~', path)

    def __delitem__(self, name):
        try:
            os.unlink(self._path(name))
        except FileNotFoundError:
            raise KeyError(name) from None

    def __iter__(self):
        names = os.listdir(self._folder) if os.path.isdir(self._folder) else []
        return iter(sorted(name for name in names if not name.endswith('~')))

    def __len__(self):
        return sum(1 for _ in self)

    def __repr__(self):
        return repr(dict(self))

module = sys.modules['hotcell'] = ModuleType('hotcell')
exec(text, module.__dict__)
module.vars = Vars(folder)
'''


def worker():
    import _signal
    import os
    import sys
    own, names = os.getpid(), sys.modules['__main__'].__dict__
    library, module = names.pop('LIBRARY'), names.pop('MODULE')
    del names['worker']
    # What a pre-started interpreter has at hand, which would take longer than a call: the script for values, and a fork of ours.
    given = names.pop('GIVEN', {})
    loaded = given.get('value', {})
    if loaded:
        _ast = loaded['syntax']()
    else:
        import _ast
    calls = os.open('.home/.hotcell/calls', os.O_RDONLY)
    answers = os.open('.home/.hotcell/answers', os.O_WRONLY)
    for path in ('.home/.hotcell/calls', '.home/.hotcell/answers', 'main.py'):
        os.unlink(path)
    # Between calls nobody is to be interrupted. What a call sets stays set for the next.
    on_interrupt = _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    stdin, kept = os.path.abspath('.home/.hotcell/stdin'), os.path.abspath('.home/.hotcell/vars')
    # Scripts that make pictures and values of what a call shows; they are loaded by the first that shows something.
    scripts, folder, shows, has_shown = '/workspace/.home/.hotcell/', '/workspace/.home/.hotcell/display/', False, False
    words = b'matplotlib', b'pyplot', b'pylab', b'seaborn', b'plotly', b'altair', b'PIL', b'IPython', b'display(', b'.plot', b'.hist(', b'.boxplot('
    # What `prompt` of the language's file sets: values as Python's own prompt shows them.
    session = {}
    loop = None
    pending = b''
    had_input = False
    # What a copy opens again when its own files are in place: its folder, and (descriptor, path, flags, offset).
    moved = None

    def read():
        nonlocal pending
        piece = os.read(calls, 1 << 16)
        if not piece:
            os._exit(0)
        pending += piece

    def next_call():
        nonlocal pending
        while b'\n' not in pending:
            read()
        line, _, pending = pending.partition(b'\n')
        number, size, has_input = map(int, line.split())
        while len(pending) < size:
            read()
        text, pending = pending[:size], pending[size:]
        return number, text, has_input

    def answer(number, code, value):
        value = value if len(value) <= 16000 else value[:16000] + ' ...'
        value = value.encode('utf-8', 'backslashreplace')
        said = b'done %d %d %d\n%s' % (number, code, len(value), value)
        while said:
            said = said[os.write(answers, said):]

    def read_from(has_input):
        nonlocal had_input
        if has_input or had_input or sys.stdin is None or sys.stdin.closed:
            file = os.open(stdin if has_input else '/dev/null', os.O_RDONLY)
            os.dup2(file, 0)
            os.close(file)
            sys.stdin = open(0, closefd=False)
        had_input = has_input
        if has_input:
            os.unlink(stdin)

    def wait(coroutine):
        nonlocal loop
        import asyncio
        if loop is None or loop.is_closed():
            loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        task = loop.create_task(coroutine)
        try:
            return loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                try:
                    loop.run_until_complete(task)
                except BaseException:
                    pass
            raise

    def script():
        if not loaded:
            loaded['__name__'] = 'value'
            with open(scripts + 'value.py') as file:
                exec(compile(file.read(), scripts + 'value.py', 'exec'), loaded)
        return loaded

    def prepare(text):
        nonlocal shows, has_shown, library
        if library and b'hotcell' in text:
            exec(library, {'__name__': 'hotcell', 'folder': kept, 'text': module})
            library = ''
        if has_shown:
            try:
                for name in os.listdir(folder):
                    os.unlink(folder + name)
            except OSError:
                pass
        if not shows and any(word in text for word in words):
            script()['library']('display')['install']()
            shows = True
        has_shown = shows

    def form(value):
        nonlocal has_shown
        if value is None:
            return ''
        try:
            if session:
                has_shown = True
                return script()['library']('display')['at_prompt'](value)
            kind, text = script()['form'](value)
            # Else it is shown.
            has_shown = has_shown or not kind
            return text or ''
        except Exception:
            return repr(value)

    def evaluate(tree, path, mode):
        # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT and inspect.CO_COROUTINE; their modules are slow to load.
        code = compile(tree, path, mode, 0x2000, True)
        value = eval(code, names)
        return wait(value) if code.co_flags & 0x80 else value

    def run(text, path):
        tree = compile(text, path, 'exec', 0x2000 | _ast.PyCF_ONLY_AST, True)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], _ast.Expr) else None
        value = evaluate(tree, path, 'exec') if tree.body else None
        if last is not None:
            value = evaluate(_ast.Expression(last.value), path, 'eval')
        value = form(value)
        if shows:
            script()['library']('display')['end_call']()
        return value

    def status(error, path):
        if isinstance(error, SystemExit):
            if error.code is None or isinstance(error.code, int):
                return (error.code or 0) & 0xff
            print(error.code, file=sys.stderr)
            return 1
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename != path:
            trace = trace.tb_next
        error = error.with_traceback(trace)
        # As at a prompt: `traceback.print_last()` and `pdb.pm()` look here.
        sys.last_exc = sys.last_value = error
        sys.last_type, sys.last_traceback = type(error), trace
        sys.excepthook(type(error), error, trace)
        return 130 if isinstance(error, KeyboardInterrupt) else 1

    def fork():
        import warnings
        with warnings.catch_warnings():
            # That threads stay behind is said in our documentation.
            warnings.simplefilter('ignore')
            return os.fork()

    def fork_aside(number):
        # The program never finds the copy among its children. Our own fork sees to that; another is done twice.
        if 'fork' in given:
            made = given['fork']()
            if made < 0:
                raise OSError(-made, 'no copy')
            return made
        child = fork()
        if child:
            try:
                os.waitpid(child, 0)
            except OSError:
                pass
            return child
        try:
            if fork():
                os._exit(0)
        except OSError as error:
            answer(number, 1, os.strerror(error.errno))
            os._exit(0)
        return 0

    def copy(number):
        nonlocal own, moved
        import gc
        random = sys.modules.get('random')
        state = random and random.getstate()
        # Or the collector touches, and so copies, whatever is shared.
        gc.freeze()
        try:
            if fork_aside(number):
                return
        except OSError as error:
            return answer(number, 1, os.strerror(error.errno))
        own = os.getpid()
        os.setsid()
        if state:
            random.setstate(state)
        renew(loop)
        moved = folder_now(), opened()
        answer(number, 0, str(own))

    def renew(loop):
        # An epoll and the pipe that wakes it are shared by a fork.
        if loop is None or loop.is_closed():
            return
        try:
            selector = type(loop._selector)()
            for key in list(loop._selector.get_map().values()):
                selector.register(key.fileobj, key.events, key.data)
            loop._selector.close()
            loop._selector = selector
            loop._close_self_pipe()
            loop._make_self_pipe()
        except Exception:
            loop.close()

    def folder_now():
        try:
            return os.getcwd()
        except OSError:
            return '/workspace'

    def opened():
        files = []
        for name in os.listdir('/proc/self/fd'):
            try:
                descriptor, path = int(name), os.readlink('/proc/self/fd/' + name)
                found = os.fstat(descriptor)
                kind = found.st_mode & 0o170000
                if descriptor < 3 or kind not in (0o100000, 0o040000):
                    continue
                with open('/proc/self/fdinfo/' + name) as file:
                    facts = dict(line.split(':', 1) for line in file)
                offset, flags = int(facts['pos']), int(facts['flags'], 8)
                if found.st_nlink and path.startswith('/workspace/'):
                    files.append((descriptor, path, flags, offset))
                elif not found.st_nlink and kind == 0o100000:
                    copied = os.open('/tmp', os.O_TMPFILE | os.O_RDWR)
                    done = 0
                    while done < found.st_size:
                        done += os.sendfile(copied, descriptor, done, 1 << 30) or found.st_size
                    replace(descriptor, copied, flags, offset)
            except (OSError, ValueError, KeyError):
                pass
        return files

    def replace(descriptor, new, flags, offset):
        os.dup2(new, descriptor, not flags & os.O_CLOEXEC)
        os.close(new)
        os.lseek(descriptor, offset, os.SEEK_SET)

    def settle():
        nonlocal moved
        (place, files), moved = moved, None
        for descriptor, path, flags, offset in files:
            try:
                replace(descriptor, os.open(path, flags), flags, offset)
            except OSError:
                pass
        try:
            os.chdir(place)
        except OSError:
            pass

    while True:
        number, text, has_input = next_call()
        if moved:
            settle()
        if not number:
            exec(text, {'__name__': 'prelude', 'session': session})
            continue
        if has_input == 2:
            copy(number)
            continue
        path, code, value = '/tmp/call-%d.py' % number, 0, ''
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC)
            os.write(file, text)
            os.close(file)
        except OSError:
            # It only has no source then.
            pass
        names['__file__'] = path
        try:
            try:
                read_from(has_input)
                prepare(text)
                _signal.signal(_signal.SIGINT, on_interrupt)
                value = run(text, path)
            finally:
                on_interrupt = _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
        except BaseException as error:
            # Once more: an interrupt may have come in between.
            _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
            try:
                code = status(error, path)
            except BaseException:
                code = 1
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:
                pass
        if os.getpid() != own:
            # A copy that the program made ends where the program does.
            os._exit(code)
        answer(number, code, value)


worker()
