# `mcp.runtime`: the helpers of mcp-server-code-execution-mode, by their names, signatures and messages.
import asyncio as _asyncio
import builtins as _builtins

_mcp = _builtins.mcp
_state, _ask, _ask_async = _mcp._state, _mcp._ask, _mcp._ask_async
MCPError = _mcp.ToolError

__all__ = [
    'MCPError', 'call_tool', 'capability_summary', 'describe_server', 'discovered_servers', 'list_loaded_server_metadata', 'list_servers',
    'list_servers_sync', 'list_tools', 'list_tools_sync', 'query_tool_docs', 'query_tool_docs_sync', 'save_tool', 'search_tool_docs',
    'search_tool_docs_sync',
]


def _servers():
    if 'known' not in _state:
        _state['known'] = _ask({'ask': 'servers'})
    return _state['known']


def _loaded(server, message):
    for known in _servers()['loaded']:
        if server in (known['name'], known['alias']):
            return known
    raise MCPError(message.format(server), 'unknown_server', str(server))


def _tools(known):
    if known['alias'] not in _state['tools']:
        _state['tools'][known['alias']] = _ask({'ask': 'tools', 'server': known['alias']})
    return _state['tools'][known['alias']]


async def _async(function, *given):
    def settled():
        try:
            return function(*given), None
        except MCPError as error:
            # Raised where it is awaited, and not in the thread.
            return None, error.with_traceback(None)

    result, error = await _asyncio.get_running_loop().run_in_executor(None, settled)
    if error is not None:
        raise error
    return result


def discovered_servers(detailed=False):
    """The names of all configured servers; with `detailed` what their owner says of each."""
    found = _servers()['discovered']
    return tuple({'name': it['name'], 'description': it['description']} for it in found) if detailed else tuple(it['name'] for it in found)


def list_servers_sync():
    """The servers of this run."""
    return tuple(sorted(it['name'] for it in _servers()['loaded']))


async def list_servers():
    """The servers of this run."""
    return await _async(list_servers_sync)


async def list_tools(server):
    """The tools of a server, as it lists them."""
    known = await _async(_loaded, server, "Server '{}' is not available")
    return await _ask_async({'ask': 'listed', 'server': known['alias']})


def list_tools_sync(server=None):
    """The tools of a server: name, alias, description, input_schema."""
    if server is None:
        raise MCPError('list_tools_sync(server) requires a server name')
    tools = _tools(_loaded(server, "Server '{}' is not loaded"))
    return tuple({'name': it['name'], 'alias': it['alias'], 'description': it['description'], 'input_schema': it['inputSchema']} for it in tools)


def describe_server(name):
    """A server and its tools."""
    known = _loaded(name, "Server '{}' is not loaded")
    return {'name': known['name'], 'alias': known['alias'], 'tools': list(list_tools_sync(name)), 'cwd': known['cwd']}


def list_loaded_server_metadata():
    """Every server of this run, and its tools; of one that cannot be had, why."""
    def described(name):
        try:
            return describe_server(name)
        except MCPError as error:
            known = _loaded(name, "Server '{}' is not loaded")
            return {'name': known['name'], 'alias': known['alias'], 'tools': [], 'cwd': known['cwd'], 'error': str(error)}

    return tuple(described(name) for name in list_servers_sync())


def _doc(known, tool, detail):
    doc = {'server': known['name'], 'serverAlias': known['alias'], 'tool': tool['name'], 'toolAlias': tool['alias']}
    if tool.get('description'):
        doc['description'] = tool['description']
    if str(detail).lower() == 'full':
        doc['inputSchema'] = tool.get('inputSchema')
    return doc


def _docs(server, tool, detail):
    known = _loaded(server, 'Server {} is not loaded')
    if tool is not None and not isinstance(tool, str):
        raise MCPError("'tool' must be a string when provided")
    tools = _tools(known)
    if tool is not None:
        tools = [it for it in tools if tool.lower() in (it['name'].lower(), it['alias'].lower())]
        if not tools:
            raise MCPError(f"Tool '{tool}' not found for server {server}", 'unknown_tool', known['alias'], tool)
    return [_doc(known, it, detail) for it in tools]


async def query_tool_docs(server, tool=None, detail='summary'):
    """What a server says of its tools, or of the one that is named."""
    found = await _async(_docs, server, tool, detail)
    return found if tool is None else found[0]


def query_tool_docs_sync(server, tool=None, detail='summary'):
    """The same as a list, also of the one that is named."""
    return _docs(server, tool, detail)


def _search(query, limit, detail):
    found = _ask({'ask': 'search', 'about': query, 'limit': max(1, min(20, limit))})
    return [_doc({'name': it['server'], 'alias': it['serverAlias']}, it, detail) for it in found]


async def search_tool_docs(query, *, limit=5, detail='summary'):
    """Tools of all servers that fit the words, the best first."""
    if not isinstance(query, str) or not query.strip():
        raise MCPError("Missing 'query' value")
    try:
        limit = int(limit)
    except (TypeError, ValueError):
        raise MCPError("'limit' must be an integer") from None
    return await _async(_search, query, limit, detail)


def search_tool_docs_sync(query, *, limit=5, detail='summary'):
    """The same; nothing for no words."""
    if not isinstance(query, str) or not query.strip():
        return []
    try:
        limit = int(limit)
    except (TypeError, ValueError):
        limit = 5
    return _search(query, limit, detail)


async def call_tool(server, tool, arguments=None):
    """Calls a tool; its whole result, also one that says that it failed."""
    if not isinstance(tool, str) or not tool:
        raise MCPError('Missing tool name')
    if arguments is not None and not isinstance(arguments, dict):
        raise MCPError('Arguments must be an object')
    known = await _async(_loaded, server, "Server '{}' is not available")
    return dict(await _ask_async({'ask': 'raw', 'server': known['alias'], 'tool': tool, 'arguments': arguments or {}}))


def save_tool(func):
    """Keeps a function for later runs."""
    if not callable(func) or not hasattr(func, '__code__'):
        raise ValueError('save_tool expects a function')
    if not hasattr(_mcp, '_save_tool'):
        raise MCPError('MCP request failed')
    _mcp._save_tool(func)
    return f"Tool '{func.__name__}' saved. It will be available in future sessions."


def capability_summary():
    """A short manual."""
    return (
        'Tools of other MCP servers are functions here.\n'
        'runtime.discovered_servers(), await runtime.list_servers(): which servers there are.\n'
        "await runtime.search_tool_docs('words'), await runtime.query_tool_docs('server', detail='full'): their tools.\n"
        'await mcp_server.tool(name=value), await runtime.call_tool(server, tool, {}): a call, and its whole result.\n'
        'server.tool(name=value): a call, and its value. A tool that fails raises MCPError.\n'
        'Nothing is kept between runs unless they name the same session.'
    )
