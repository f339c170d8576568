"""What a program has of hotcell: its arguments, what it shows, values that it shares, tools that it may call."""

import builtins as _builtins
import sys as _sys

__all__ = ["args", "display", "tools", "vars"]

args = _sys.argv[1:]
"""The program's arguments."""

vars = {}
"""Values by name. The calls of a session share them, in every language; a program on its own has them to itself."""


def display(*values):
    """Shows values and pictures beside what is printed, or prints them where nothing can be shown."""
    show = getattr(_builtins, "display", None) or print
    for value in values:
        show(value)


class _Tools:
    """The upstream servers that the program may call: `tools.github.list_issues(repo="x")`."""

    def __getattr__(self, server):
        if hasattr(_builtins, server) and not server.startswith("_"):
            return getattr(_builtins, server)
        raise AttributeError(f"there is no server {server!r}: see `hotcell servers`")


tools = _Tools()
