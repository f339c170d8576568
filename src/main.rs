//! The program: the jail's hook, then the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: this process may be a spawner, not a server.
    jail::hook();
    // Or the program of a cell: an engine, or the doctor's probe.
    if let Some(code) = engines::hook(jail::OWN_BINARY) {
        return code;
    }
    hotcell::doctor::hook().unwrap_or_else(hotcell::cli::main)
}
