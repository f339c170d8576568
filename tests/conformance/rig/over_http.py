"""mcp-server-time over streamable HTTP at $PORT, for `servers`: the package itself serves stdio only."""
import os

from mcp_server_time.server import create_server

create_server("UTC").run(transport="streamable-http", port=int(os.environ["PORT"]))
