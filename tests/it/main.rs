//! Promises to users, tested on the real binary.

mod code_runner;
mod error_kinds;
mod fuzz;
mod hostile_server;
mod mcp;
mod raw;
