# `save_tool(f)`: makes a program of a function and all that it needs, and has hotcell keep it. It runs in the sandbox of the program that
# calls it, when it calls it. The source comes from the syntax tree of the file that has the function, in a session too; imports, constants and
# other functions come from the names that it uses.
import ast
import inspect
import json
import linecache
import types
import typing

JSON = {int: 'integer', float: 'number', str: 'string', bool: 'boolean', list: 'array', tuple: 'array', set: 'array', dict: 'object', type(None): 'null'}


def save(function, example, call):
    if not isinstance(function, types.FunctionType):
        raise ValueError('save_tool expects a function')
    name = function.__name__
    if not name.isidentifier() or function.__closure__:
        raise ValueError(f'save_tool needs a function with a name that uses no variables of another function: {name}')
    parts = {}
    collect(name, function, parts)
    imports = sorted({text for kind, text in parts.values() if kind == 'import'})
    values = [text for kind, text in parts.values() if kind == 'value']
    sources = [text for kind, text in reversed(parts.values()) if kind == 'source']
    text = '\n'.join(imports + values) + '\n\n\n' + '\n\n\n'.join(sources)
    text += f"\n\n\nif __name__ == '__main__':\n    import hotcell\n    hotcell.answer({name})\n"
    about, of = described(inspect.getdoc(function) or '')
    returns = kind(hints(function).get('return', typing.Any))
    return call('saved', 'save_tool', {
        'language': 'python', 'name': name, 'source': text.lstrip(), 'description': about,
        'schema': schema(function, of), **({'returns': returns} if returns else {}), **({'example': example} if example else {}),
    })


def collect(name, thing, parts):
    """What a name stands for, and what that needs, each as text."""
    if name in parts:
        return
    if isinstance(thing, types.ModuleType):
        own = thing.__name__
        parts[name] = ('import', f'import {own}' if own == name else f'import {own} as {name}')
    elif isinstance(thing, (types.FunctionType, type)) and thing.__module__ == '__main__':
        node, text = definition(thing)
        parts[name] = ('source', text)
        for used in names(node):
            if used in globals_of(thing) and used not in ('__name__', '__file__'):
                collect(used, globals_of(thing)[used], parts)
    elif getattr(thing, '__module__', None) not in (None, '__main__', 'builtins') and getattr(thing, '__qualname__', '').isidentifier():
        own = thing.__qualname__
        parts[name] = ('import', f'from {thing.__module__} import {own}' + ('' if own == name else f' as {name}'))
    elif type(thing).__module__ == 'typing' and getattr(thing, '_name', None):
        parts[name] = ('import', f'from typing import {thing._name}' + ('' if thing._name == name else f' as {name}'))
    else:
        parts[name] = ('value', f'{name} = {literal(name, thing)}')


def literal(name, value):
    text = repr(value)
    try:
        if len(text) <= 10_000 and ast.literal_eval(text) == value:
            return text
    except (ValueError, SyntaxError):
        pass
    raise ValueError(f'`{name}` cannot be kept with the function: make it inside the function, or pass it as an argument')


def globals_of(thing):
    return thing.__globals__ if isinstance(thing, types.FunctionType) else vars(__import__('__main__'))


def definition(thing):
    """The syntax tree and the text of a function or class."""
    # A class has no file of its own in a session, but its methods have.
    own = [thing] if isinstance(thing, types.FunctionType) else list(vars(thing).values())
    files = [part.__code__.co_filename for part in own if isinstance(part, types.FunctionType)]
    try:
        lines = linecache.getlines(files[0] if files else inspect.getfile(thing))
    except (OSError, TypeError):
        lines = []
    text = ''.join(lines)
    line = thing.__code__.co_firstlineno if isinstance(thing, types.FunctionType) else None
    found = None
    for node in ast.walk(ast.parse(text)) if text else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == thing.__name__:
            first = min([node.lineno] + [mark.lineno for mark in node.decorator_list])
            if line is None or line == first:
                found = node, first
    if found is None:
        raise ValueError(f'the source of `{thing.__name__}` cannot be found')
    node, first = found
    text = ''.join(lines[first - 1:node.end_lineno])
    if node.col_offset:
        raise ValueError(f'`{thing.__name__}` must be defined at the top level')
    return node, text.rstrip()


def names(node):
    return dict.fromkeys(part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def described(text):
    """The description, and what it says of each parameter: `name: what` under `Args:`, or `:param name: what`."""
    about, of, listing = [], {}, False
    for line in text.splitlines():
        word, _, rest = line.strip().partition(':')
        if line.strip().lower() in ('args:', 'arguments:', 'parameters:'):
            listing = True
        elif line.strip().startswith(':param '):
            words, _, what = line.strip()[7:].partition(':')
            of[words.split()[-1]] = what.strip()
        elif listing and line.startswith((' ', '\t')) and rest:
            of[word.partition('(')[0].strip()] = rest.strip()
        elif line.strip():
            listing = False
            about.append(line.strip())
    return '\n'.join(about), of


def hints(function):
    try:
        return typing.get_type_hints(function)
    except Exception:
        return {}


def schema(function, described):
    types_of, properties, required, more = hints(function), {}, [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind == parameter.VAR_KEYWORD:
            more = True
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise ValueError(f'`{parameter.name}` cannot be given by name, as the arguments of a tool are')
        of = kind(types_of.get(parameter.name, typing.Any))
        if parameter.name in described:
            of['description'] = described[parameter.name]
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        else:
            try:
                of['default'] = json.loads(json.dumps(parameter.default))
            except (TypeError, ValueError):
                of['description'] = (of.get('description', '') + f' (default {parameter.default!r})').strip()
        properties[parameter.name] = of
    made = {'type': 'object', 'properties': properties, 'required': required}
    return made if more else {**made, 'additionalProperties': False}


def kind(hint):
    """A type as JSON Schema."""
    origin, of = typing.get_origin(hint), typing.get_args(hint)
    if hint in JSON:
        return {'type': JSON[hint]}
    if origin is typing.Literal:
        return {'enum': list(of)}
    if origin is typing.Union or type(hint).__name__ == 'UnionType':
        kinds = [kind(one) for one in of or typing.get_args(hint)]
        plain = [one['type'] for one in kinds if list(one) == ['type']]
        return {'type': plain} if len(plain) == len(kinds) else {'anyOf': kinds}
    if origin in (list, set, tuple):
        return {'type': 'array', **({'items': kind(of[0])} if of else {})}
    if origin is dict:
        return {'type': 'object'}
    return {}
