

# What of that is a name of the program: servers, their tools, `mcp`.


def plain(name):
    return ''.join(letter for letter in name.lower() if letter.isalnum())


def tools(server):
    """What a server says of its tools, asked once."""
    if server not in state['tools']:
        state['tools'][server] = ask({'ask': 'tools', 'server': server})
    return state['tools'][server]


TYPES = {'string': str, 'integer': int, 'number': float, 'boolean': bool, 'array': list, 'object': dict}


class Tool:
    """A tool of a server, which is a function of named arguments."""

    def __init__(self, server, name, whole=False):
        self.server, self.__name__, self.whole = server, name, whole
        self.__qualname__, self.__module__ = f'{server}.{name}', f'mcp.servers.{server}'

    def __call__(self, *given, **named):
        if given and self.server == 'saved' and not (len(given) == 1 and isinstance(given[0], dict)):
            given, named = self.in_order(given, named)
        if given and (named or len(given) > 1 or not isinstance(given[0], dict)):
            raise TypeError(f'{self.__qualname__} takes its arguments by name, or as one dict: {self.written()}')
        asked = {'server': self.server, 'tool': self.__name__, 'arguments': given[0] if given else named}
        return either({**asked, 'ask': 'whole'} if self.whole else asked)

    def in_order(self, given, named):
        """The arguments by name of a call as the function was written, which has its parameters in this order."""
        names = list((self.described().get('inputSchema') or {}).get('properties') or {})
        if len(given) > len(names) or not named.keys().isdisjoint(names[:len(given)]):
            return given, named
        return (), {**dict(zip(names, given)), **named}

    # As a function's: `help` takes it for one.
    def __get__(self, owner, kind=None):
        return self

    def described(self):
        for tool in tools(self.server):
            if self.__name__ == tool['name'] or plain(self.__name__) == plain(tool['name']):
                return tool
        raise AttributeError(f'no tool {self.__qualname__}')

    def written(self):
        try:
            return self.described()['signature']
        except (ToolError, AttributeError) as error:
            return error

    @property
    def __signature__(self):
        import inspect
        schema = self.described().get('inputSchema') or {}
        properties, required = schema.get('properties') or {}, schema.get('required') or []
        parameters, kind = [], inspect.Parameter.KEYWORD_ONLY
        for name in sorted(properties, key=lambda name: name not in required):
            if not name.isidentifier():
                continue
            about = properties[name] if isinstance(properties[name], dict) else {}
            default = inspect.Parameter.empty if name in required else about.get('default')
            wanted = TYPES.get(about['type'] if isinstance(about.get('type'), str) else None, inspect.Parameter.empty)
            parameters.append(inspect.Parameter(name, kind, default=default, annotation=wanted))
        return inspect.Signature(parameters)

    __doc__ = property(lambda self: self.described()['help'])

    def __repr__(self):
        return f'<tool {self.__qualname__}>'


class Server:
    """A server, whose tools are its functions."""

    whole = False

    def __init__(self, name):
        self.__name__ = name

    def __getattr__(self, tool):
        if tool.startswith('__'):
            raise AttributeError(tool)
        return Tool(self.__name__, tool, self.whole)

    def __getitem__(self, tool):
        return Tool(self.__name__, tool, self.whole)

    def __dir__(self):
        return [tool['alias'] for tool in tools(self.__name__)]

    def __repr__(self):
        return f'<server {self.__name__}>'


class Proxy(Server):
    """The same with whole results."""

    whole = True

    async def list_tools(self):
        return await ask_async({'ask': 'listed', 'server': self.__name__})


class Tools(type(sys)):
    """A server as a module: a function for each tool."""

    def __init__(self, server, name='', whole=True):
        super().__init__(name or f'mcp.servers.{server}')
        self._server, self._whole = server, whole

    def __getattr__(self, name):
        server = self._server
        if name == 'TOOLS':
            return [tool['name'] for tool in tools(server)]
        if name == 'TOOL_MAP':
            return {tool['alias']: tool['name'] for tool in tools(server)}
        if name == '__all__':
            return dir(self)
        if name.startswith('__'):
            raise AttributeError(name)
        return Tool(server, name, self._whole)

    def __dir__(self):
        return [tool['alias'] for tool in tools(self._server)]

    def __repr__(self):
        return f'<server {self._server}>'


class Mcp(type(sys)):
    """What the servers have in common."""

    ToolError = MCPError = ToolError
    _state, _ask, _ask_async = state, staticmethod(ask), staticmethod(ask_async)

    @staticmethod
    def call(name, arguments=None, **named):
        server, _, tool = name.partition('.')
        return either({'server': server, 'tool': tool, 'arguments': arguments or named})

    @staticmethod
    def call_raw(name, arguments=None, **named):
        server, _, tool = name.partition('.')
        return either({'ask': 'raw', 'server': server, 'tool': tool, 'arguments': arguments or named})

    @staticmethod
    def help(about=''):
        return either({'ask': 'help', 'about': about})

    @staticmethod
    def search(query, limit=8):
        return either({'ask': 'search', 'about': query, 'limit': limit})

    @staticmethod
    def stubs(server=''):
        return either({'ask': 'python_stubs', 'about': server})

    @staticmethod
    def resources(server):
        return either({'ask': 'resources', 'server': server})

    @staticmethod
    def read(server, uri):
        return either({'ask': 'read', 'server': server, 'about': uri})

    @staticmethod
    def prompts(server):
        return either({'ask': 'prompts', 'server': server})

    @staticmethod
    def prompt(server, name, arguments=None, **named):
        return either({'ask': 'prompt', 'server': server, 'about': name, 'arguments': arguments or named})

    def __getattr__(self, name):
        if name == 'runtime' and sys.modules.get('mcp') is self:
            import mcp.runtime
            return sys.modules['mcp.runtime']
        raise AttributeError(f"module 'mcp' has no attribute '{name}': with servers configured it is hotcell's own; ask for the package with packages: [\"mcp\"]")


class Runtime:
    """`mcp.runtime`, loaded when it is first used."""

    def __getattr__(self, name):
        return getattr(builtins.mcp.runtime, name)


def save_tool(function, **example):
    """Keeps a function as a tool that later programs call as `saved.NAME(...)`. With an example it is tried first."""
    own = {}
    exec(ask({'server': 'saved', 'tool': 'save_script', 'arguments': {'language': 'python'}}), own)
    return own['save'](function, example, lambda *asked: ask(dict(zip(('server', 'tool', 'arguments'), asked))))


def on_error(kind, error, trace):
    """Shows an error without the frames of our own files."""
    own = getattr(error, 'obj', None)
    if isinstance(error, AttributeError) and isinstance(own, type(sys)) and hasattr(error, 'add_note'):
        # The program has imported a module that is called like a server.
        alias = own.__name__
        if hasattr(builtins, 'mcp') and hasattr(builtins.mcp.servers, alias):
            error.add_note(f'`{alias}` is the imported module here; the server is called by mcp.call("{alias}.{error.name}", {{...}})')
    if isinstance(error, NameError) and plain(error.name or '') in state['others'] and hasattr(error, 'add_note'):
        error.add_note(f'the server `{error.name}` is not among the `servers` of this run')
    if isinstance(error, (AttributeError, TypeError)) and "'coroutine'" in str(error) and hasattr(error, 'add_note'):
        error.add_note('where a program awaits, calls of tools are awaited too: await server.tool(name=value)')
    if isinstance(error, ImportError) and error.name == 'mcp' and hasattr(error, 'add_note'):
        error.add_note('`mcp` is hotcell\'s own while servers are configured; ask for the package with packages: ["mcp"]')
    seen, each = set(), error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        each.__traceback__ = without_ours(each.__traceback__)
        each = each.__cause__ or each.__context__
    sys.__excepthook__(kind, error, without_ours(trace))


def without_ours(trace):
    folder = FILE.rpartition('/')[0] + '/'
    is_ours = lambda it: it.tb_frame.f_code.co_filename.startswith(folder)
    first = trace
    while first is not None and is_ours(first):
        first = first.tb_next
    at = first
    while at is not None and at.tb_next is not None:
        if is_ours(at.tb_next):
            at.tb_next = at.tb_next.tb_next
        else:
            at = at.tb_next
    return first


def facts_of_run():
    """Written by who starts the program: a literal in Python too."""
    file = os.open(FILE.rpartition('/')[0] + '/servers.json', os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = b''.join(iter(lambda: os.read(file, 1 << 16), b''))
        # It is slow to load, and quick where it is there.
        json = sys.modules.get('json')
        return json.loads(text) if json else eval(text)
    finally:
        os.close(file)


def bind(facts=None):
    """Makes the servers names of the program."""
    facts = facts or facts_of_run()
    servers, state['port'] = facts['servers'], facts['port']
    os.environ.update(facts['env'])
    state['others'] = facts.get('others', ())
    mcp, listed = Mcp('mcp', Mcp.__doc__), type(sys)('mcp.servers')
    mcp.servers, mcp.__path__, listed.__path__ = listed, [FILE.rpartition('/')[0] + '/mcp'], []
    names, modules = {'mcp': mcp, 'ToolError': ToolError, 'MCPError': ToolError}, {'mcp': mcp, 'mcp.servers': listed}
    proxies = {}
    for alias, name in servers:
        proxy = proxies[name] = Proxy(alias)
        module = modules[f'mcp.servers.{alias}'] = Tools(alias)
        setattr(listed, alias, module)
        modules[f'mcp_{alias}'] = names[f'mcp_{alias}'] = proxy
        # One that is called like a module of Python's own is there too, unless the program imports that.
        names[alias] = Server(alias)
    names.update(mcp_servers=proxies, LOADED_MCP_SERVERS=tuple(proxies), runtime=Runtime())
    if 'saved' in names:
        names['save_tool'] = mcp._save_tool = save_tool
        modules['user_tools'] = Tools('saved', 'user_tools', False)
        # Where functions of earlier programs are names of this one.
        names.update((tool, Tool('saved', tool)) for tool in os.environ.pop('MCP_USER_TOOLS', '').split())
    for name, thing in names.items():
        if not hasattr(builtins, name):
            setattr(builtins, name, thing)
            if facts.get('own_names'):
                sys.modules['__main__'].__dict__.setdefault(name, thing)
    # Unless the program has a module of that name.
    if facts['is_ours']:
        sys.modules.update(modules)
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = on_error
    return names, modules


def bind_late(facts=None):
    """The same in an interpreter that has started: those that it starts find the script by their path."""
    folder = FILE.rpartition('/')[0]
    os.environ['PYTHONPATH'] = ':'.join(filter(None, [folder, os.environ.get('PYTHONPATH')]))
    return bind(facts)


def rehearse():
    """Does once, in an interpreter that waits, what a program with servers and its first call do, and undoes it: it copies their memory."""
    import json
    hook, before = sys.excepthook, dict(os.environ)
    env = {'MCP_AVAILABLE_SERVERS': '[]', 'MCP_DISCOVERED_SERVERS': '[]'}
    facts = json.dumps({'servers': [['x', 'x']], 'port': 0, 'is_ours': 1, 'env': env}).encode()
    names, modules = bind_late(json.loads(facts))
    for name, thing in names.items():
        if getattr(builtins, name, None) is thing:
            delattr(builtins, name)
    for name, module in modules.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
    sys.excepthook = hook
    for name in set(os.environ).difference(before):
        del os.environ[name]
    os.environ.update(before)
    rehearse_call()


def start():
    bind()
    own = FILE.rpartition('/')[0]
    sys.path[:] = [folder for folder in sys.path if folder != own]
    this = sys.modules.pop('sitecustomize')
    try:
        import sitecustomize
    except ImportError:
        sys.modules['sitecustomize'] = this


if __name__ == 'sitecustomize':
    start()
