# A session in Python: it takes calls from a FIFO, runs each in `__main__`, and says when it is done. A call is `NUMBER BYTES INPUT\n` and
# its code, and is answered with `done NUMBER CODE BYTES\n` and the value of its last expression. Number 0 is ours, and is not answered.
# Each call is a file of its own, so that tracebacks, `inspect` and whatever else reads sources find it; none of our frames is shown.
def worker():
    import _ast
    import _signal
    import os
    import sys
    own, names = os.getpid(), sys.modules['__main__'].__dict__
    del names['worker']
    calls = os.open('.home/.hotcell/calls', os.O_RDONLY)
    answers = os.open('.home/.hotcell/answers', os.O_WRONLY)
    for path in ('.home/.hotcell/calls', '.home/.hotcell/answers', 'main.py'):
        os.unlink(path)
    # Between calls nobody is to be interrupted. What a call sets stays set for the next.
    on_interrupt = _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    stdin = os.path.abspath('.home/.hotcell/stdin')
    # Scripts that make pictures and values of what a call shows; they are loaded by the first that shows something.
    scripts, folder, loaded, shows = '/workspace/.home/.hotcell/', '/workspace/.home/.hotcell/display/', {}, False
    words = b'matplotlib', b'pyplot', b'pylab', b'seaborn', b'plotly', b'altair', b'PIL', b'IPython', b'display(', b'.plot', b'.hist(', b'.boxplot('
    # What `prompt` of the language's file sets: values as Python's own prompt shows them.
    session = {}
    loop = None
    pending = b''
    had_input = False

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
        nonlocal shows
        try:
            for name in os.listdir(folder):
                os.unlink(folder + name)
        except OSError:
            pass
        if not shows and any(word in text for word in words):
            script()['library']('display')['install']()
            shows = True

    def form(value):
        if value is None:
            return ''
        try:
            if session:
                return script()['library']('display')['at_prompt'](value)
            return script()['form'](value)[1] or ''
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
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 130 if isinstance(error, KeyboardInterrupt) else 1

    while True:
        number, text, has_input = next_call()
        if not number:
            exec(text, {'__name__': 'prelude', 'session': session})
            continue
        path, code, value = '/tmp/call-%d.py' % number, 0, ''
        try:
            with open(path, 'wb') as file:
                file.write(text)
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
