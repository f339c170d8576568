"""A small server made with FastMCP, for `servers`."""
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


server.run(show_banner=False)
