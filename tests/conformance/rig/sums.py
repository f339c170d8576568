"""A small server made with FastMCP, for `servers`: over stdio, or over HTTP at $PORT."""
import os

from fastmcp import FastMCP

server = FastMCP("sums")


@server.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool
def broken() -> str:
    """Fails."""
    raise ValueError("not today")


port = os.environ.get("PORT")
server.run(show_banner=False, **({"transport": "http", "port": int(port)} if port else {}))
