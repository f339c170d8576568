//! The surface of the shell: translates and nothing more.

mod doctor;
mod languages;
mod packages;
mod run;
mod serve;
mod servers;

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::hint::{Hint, Surface};

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
    Run(Box<run::Arguments>),
    /// Serve programs to MCP clients over standard input and output
    Serve(Box<serve::Arguments>),
    /// List the languages, and which of them can run on this machine
    Languages(languages::Arguments),
    /// List, install or remove packages
    Packages(packages::Arguments),
    /// List the servers whose tools programs may call, and those tools
    Servers(servers::Arguments),
    /// Test the walls of the sandbox from inside a real cell
    Doctor(doctor::Arguments),
}

pub fn main() -> ExitCode {
    // A library that gets no thread or descriptor has no other way to say so.
    std::panic::set_hook(Box::new(|panic| {
        let what = panic.payload_as_str().unwrap_or("for no known reason");
        complain(&format!("stopped by a fault: {what}"), Some(LOW_LIMITS));
    }));
    let engine = run::start_early();
    let work = move || match Arguments::parse().command {
        Command::Run(arguments) => run::main(*arguments, engine),
        Command::Serve(arguments) => serve::main(*arguments),
        Command::Languages(arguments) => languages::main(&arguments),
        Command::Packages(arguments) => packages::main(&arguments),
        Command::Servers(arguments) => servers::main(&arguments),
        Command::Doctor(arguments) => doctor::main(&arguments),
    };
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or(OUR_FAILURE.into())
}

/// What to do when we cannot even start.
const LOW_LIMITS: &str = "Raise the limits on open files and processes (`ulimit -n`, `ulimit -u`) if they are low; else report this.";

/// What to exit with for arguments that cannot be used.
const BAD_INPUT: u8 = 2;
/// What to exit with when hotcell itself could not do its part.
const OUR_FAILURE: u8 = 125;

/// An error and its causes, in one line.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Shows on a terminal how far something is. What is written next takes its place.
fn show(bar: &[u8]) {
    use std::io::{IsTerminal, Write};
    let mut stderr = std::io::stderr().lock();
    if stderr.is_terminal() {
        let _ = stderr.write_all(b"\r\x1b[K");
        let _ = stderr.write_all(bar);
    }
}

/// The same with a hint that is not in words yet.
fn explain(message: &str, hint: Option<Hint>, surface: Surface) {
    let hint = hint.map(|hint| hint.words(surface));
    complain(message, hint.as_deref());
}

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
