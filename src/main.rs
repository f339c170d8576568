//! The program: the hook of cells and engines, then the log, then the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    hotcell::hook().unwrap_or_else(|| {
        hotcell::log::start();
        let version = env!("CARGO_PKG_VERSION");
        tracing::debug!(version, pid = std::process::id(), "starts");
        let code = hotcell::cli::main();
        tracing::debug!("ends");
        code
    })
}
