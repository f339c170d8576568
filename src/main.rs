//! The program: the jail's hook, the engines, then the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: this process may be a spawner, not a server.
    jail::hook();
    let mut arguments = std::env::args_os();
    if arguments.next().is_some_and(|name| name == jail::ENGINE) {
        // Or the program of a cell.
        return engines::main(arguments);
    }
    hotcell::doctor::hook().unwrap_or_else(hotcell::cli::main)
}
