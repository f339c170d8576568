//! The program: the jail's hook, then the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: this process may be a spawner, not a server.
    jail::hook();
    hotcell::doctor::hook().unwrap_or_else(hotcell::cli::main)
}
