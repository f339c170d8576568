//! The surface of the shell: translates and nothing more.

mod doctor;
mod languages;
mod run;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Runs code that nobody has read, in a sandbox.
#[derive(Parser)]
#[command(
    name = "hotcell",
    version,
    propagate_version = true,
    max_term_width = 100
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a program in a cell
    Run(run::Arguments),
    /// Serve programs to MCP clients over standard input and output
    Serve(serve::Arguments),
    /// List the languages, and which of them can run on this machine
    Languages(languages::Arguments),
    /// Test the walls of the sandbox from inside a real cell
    Doctor(doctor::Arguments),
}

pub fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Run(arguments) => run::main(arguments),
        Command::Serve(arguments) => serve::main(arguments),
        Command::Languages(arguments) => languages::main(&arguments),
        Command::Doctor(arguments) => doctor::main(&arguments),
    }
}

/// What to exit with for arguments that cannot be used.
const BAD_INPUT: u8 = 2;
/// What to exit with when hotcell itself could not do its part.
const OUR_FAILURE: u8 = 125;

/// Says what is wrong in one line and what to do about it in another.
fn complain(message: &str, hint: Option<&str>) {
    // Nobody left to tell is no reason to fail differently.
    use std::io::Write;
    let mut stderr = std::io::stderr().lock();
    let _ = writeln!(stderr, "hotcell: {message}");
    if let Some(hint) = hint {
        let _ = writeln!(stderr, "hint: {hint}");
    }
}
