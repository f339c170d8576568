//! MCP over HTTP.
