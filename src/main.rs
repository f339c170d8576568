//! The program: the hook of cells and engines, then the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    hotcell::hook().unwrap_or_else(hotcell::cli::main)
}
