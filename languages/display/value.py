# The value of a program's last expression, in the folder of what it shows: `value.json` if it is JSON, else `value.txt`.
#
# `compiled` makes code of a program that hands its last value to `keep`. A pre-started interpreter has this loaded and runs that code
# as it runs any program, with no frame of ours below it (`prepare`); a new one is started by `start`. Modules are loaded where
# they are needed: most values need none.
HERE = '/workspace/.home/.hotcell/'
FOLDER = HERE + 'display/'
WANTS = '{wants}'
# No program can have such a name.
NAME = ' value'
AWAITING = ' await'
MOST = 16384
ITEMS = 2000


def compiled(path, flags=0):
    """A program that keeps the value of its last expression; None if it has none, or the compiler has something to say about it."""
    code, said = quietly(made, path, flags)
    return None if said else code


def quietly(make, path, flags):
    """The code that is made of a program, if it can be, and what the compiler said about it."""
    import sys
    said, stderr = [], sys.stderr
    sys.stderr = type('Said', (), {'write': said.append, 'flush': id})
    try:
        with open(path, 'rb') as file:
            return make(file.read(), path, flags), said
    except Exception:
        return None, said
    finally:
        sys.stderr = stderr


def plain(text, path, flags=0):
    return compile(text, path, 'exec', flags, True)


def made(text, path, flags=0):
    tree = compile(text, path, 'exec', flags | 0x400, True)  # ast.PyCF_ONLY_AST
    last = tree.body[-1]
    kinds = syntax()
    if type(last) is not kinds.Expr:
        return None
    where = {name: getattr(last.value, name) for name in ('lineno', 'col_offset', 'end_lineno', 'end_col_offset')}
    name = kinds.Name(NAME, kinds.Load(), **where)
    last.value = kinds.Call(name, [last.value], [], **where)
    return compile(tree, path, 'exec', flags, True)


def syntax(known=[]):
    """Python's own syntax, whose first use takes longer than most programs."""
    if not known:
        import _ast
        known.append(_ast)
    return known[0]


def warm():
    """Does once what each program needs, and leaves no module behind."""
    import sys
    known = set(sys.modules)
    made(b'1\n', 'x')
    json('x', [1])
    for name in set(sys.modules) - known:
        del sys.modules[name]


def offer():
    import builtins
    setattr(builtins, NAME, keep)


def keep(value):
    import builtins
    vars(builtins).pop(NAME, None)
    if value is not None:
        save(value)


def save(value, name='value'):
    """Writes a value; one that is a picture is shown. What it cannot say it does not have."""
    try:
        kind, text = form(value)
        if kind:
            if len(text) > MOST:
                head, tail = text[:MOST * 3 // 4], text[-MOST // 4:]
                text = f'{head}\n[... {len(text) - len(head) - len(tail)} characters left out ...]\n{tail}'
            with open(f'{FOLDER}{name}.{kind}', 'x', encoding='utf-8', errors='backslashreplace') as file:
                file.write(text)
    except Exception:
        pass


def form(value):
    try:
        text = json(value, [ITEMS])
        if len(text) <= MOST or type(value) is not str:
            return 'json' if len(text) <= MOST else 'txt', text
        return 'txt', value
    except (ValueError, RecursionError):
        pass
    family = type(value).__module__.partition('.')[0]
    table = as_table(value, family)
    if table:
        return 'txt', table
    if family not in ('builtins', '__main__') or hasattr(value, '_repr_png_') or hasattr(value, '_repr_svg_') or isinstance(value, (list, tuple)):
        if library('display')['shows_value'](value):
            return None, None
    if hasattr(value, '_repr_html_') and type(value).__repr__ is object.__repr__:
        # Its text would be an address in memory.
        library('display')['display'](value)
        return None, None
    return 'txt', repr(value)


def json(value, left):
    """As JSON, if it is nothing else and not too much."""
    left[0] -= 1
    if left[0] < 0:
        raise ValueError
    kind = type(value)
    if kind is str:
        from _json import encode_basestring_ascii
        return encode_basestring_ascii(value)
    if kind is bool:
        return 'true' if value else 'false'
    if value is None:
        return 'null'
    if kind is int and abs(value) < 1 << 63 or kind is float and abs(value) < 1e300:
        return repr(value)
    if kind is list:
        return '[%s]' % ', '.join(json(item, left) for item in value)
    if kind is dict and all(type(key) is str for key in value):
        return '{%s}' % ', '.join(f'{json(key, left)}: {json(item, left)}' for key, item in value.items())
    raise ValueError


def as_table(value, family):
    """A table of pandas or polars, with its shape and types and at most twenty rows."""
    kind = type(value).__name__
    if family == 'polars' and kind in ('DataFrame', 'Series', 'LazyFrame'):
        return str(value)
    if family != 'pandas' or kind not in ('DataFrame', 'Series'):
        return None
    if kind == 'Series':
        name = f' {value.name!r}' if value.name is not None else ''
        return f'Series{name}, {len(value)} rows, {value.dtype}\n{value.to_string(max_rows=20, dtype=False, name=False)}'
    types = [f'{name} {kind}' for name, kind in zip(value.columns[:30], value.dtypes[:30])]
    more = ', ...' if len(value.columns) > 30 else ''
    head = f'DataFrame, {len(value)} rows x {len(value.columns)} columns: {", ".join(types)}{more}'
    return f'{head}\n{value.to_string(max_rows=20, max_cols=20, max_colwidth=60)}'


def library(name, known={}):
    """Another script of ours, by its name."""
    if name not in known:
        path = f'{HERE}{name}.py'
        known[name] = {'__name__': name, 'value': globals()}
        with open(path) as file:
            exec(compile(file.read(), path, 'exec'), known[name])
    return known[name]


def prepare(path, wants):
    """In a pre-started interpreter, before it opens the program: the code that it is to run instead of the file, if any."""
    import sys
    if 'display' in wants:
        library('display')['install']()
    code = compiled(path) if 'value' in wants else None
    if code:
        offer()
        become(path, vars(sys.modules['__main__']))
    return code


def prepare_awaiting(path, wants):
    """The same for a program that may have `await` at its top level, which Python refuses."""
    if quietly(plain, path, 0)[0] is not None or quietly(plain, path, 0x2000)[0] is None:  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        return prepare(path, wants)
    import builtins
    import sys
    if 'display' in wants:
        library('display')['install']()
    program = compiled(path, 0x2000) if 'value' in wants else None
    if program:
        offer()
    else:
        with open(path, 'rb') as file:
            program = plain(file.read(), path, 0x2000)
    become(path, vars(sys.modules['__main__']))
    setattr(builtins, AWAITING, lambda: run_awaiting(program, path))
    kinds, where = syntax(), {'lineno': 1, 'col_offset': 0, 'end_lineno': 1, 'end_col_offset': 0}
    call = kinds.Call(kinds.Name(AWAITING, kinds.Load(), **where), [], [], **where)
    return compile(kinds.Module([kinds.Expr(call, **where)], []), path, 'exec')


def run_awaiting(program, path):
    import asyncio
    import builtins
    import sys
    delattr(builtins, AWAITING)
    try:
        asyncio.run(eval(program, vars(sys.modules['__main__'])))
    except SystemExit:
        raise
    except BaseException as error:
        fail(error, path)


def become(path, main):
    """Gives the main module what it has when it is run from a file."""
    from _frozen_importlib_external import SourceFileLoader
    main.update(__file__=path, __cached__=None, __loader__=SourceFileLoader('__main__', path))


def program_of(path):
    """Its code, and whether that is to be awaited; no code if Python itself has to see the file."""
    for flags in (0, 0x2000):  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        found = quietly(plain, path, flags)[0]
        if found is None:
            continue
        awaits = found.co_flags & 0x80  # inspect.CO_COROUTINE
        code = compiled(path, flags) if 'value' in WANTS else None
        if code:
            offer()
        elif awaits or 'display' in WANTS:
            with open(path, 'rb') as file:
                code = plain(file.read(), path, flags)
        return code, awaits
    return None, False


def start():
    """Runs the program, the first of our arguments, as Python does; for a new interpreter. No frame of ours is in its tracebacks."""
    import sys
    path = '/workspace/' + sys.argv[1]
    program, awaits = program_of(path)
    if program is None:
        import os
        os.execv(sys.executable, [sys.executable, '-u', *sys.argv[1:]])
    if 'display' in WANTS:
        library('display')['install']()
    del sys.argv[0]
    sys.path[0] = '/workspace'
    main = vars(sys.modules['__main__'])
    main.pop('start', None)
    become(path, main)
    # The frames below the program are ours, and leave it no less room.
    sys.setrecursionlimit(2 * sys.getrecursionlimit() - 2 - room())
    try:
        if awaits:
            import asyncio
            asyncio.run(eval(program, main))
        else:
            exec(program, main)
    except SystemExit:
        raise
    except BaseException as error:
        fail(error, path)


def fail(error, path):
    """Ends as Python does after an error of the program, without the frames below the program."""
    import sys
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    error = error.with_traceback(trace)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    sys.excepthook(type(error), error, trace)
    if isinstance(error, KeyboardInterrupt):
        import os, signal
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    sys.exit(1)


def room():
    """How many calls a program may nest here."""
    names = {}
    exec('def depth(n):\n    try:\n        return depth(n + 1)\n    except RecursionError:\n        return n\nn = depth(1)', names)
    return names['n']
