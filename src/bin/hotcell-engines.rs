//! The program of a cell whose runtime is one of ours.
//!
//! A file of its own because every role of `hotcell` would pay for it: a static binary
//! that can lie anywhere is adjusted to its place whenever it starts, all of it.

use std::process::ExitCode;

fn main() -> ExitCode {
    engines::main(std::env::args_os().skip(1))
}
