//! Promises to users, tested on the real binary.

mod mcp;
