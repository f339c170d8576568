//! What hotcell says of its own, on standard error: how much of it, and in which colours.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static QUIET: AtomicBool = AtomicBool::new(false);
static VERBOSE: AtomicBool = AtomicBool::new(false);
static COLORED: AtomicBool = AtomicBool::new(false);

#[derive(clap::Args)]
#[command(next_help_heading = "Messages of hotcell")]
pub struct Speech {
    /// Print only errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Also print how a program was run
    #[arg(short, long, global = true)]
    verbose: bool,
    /// Use colours in hotcell's own messages: auto, always or never [default: auto, and never if NO_COLOR is set]
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_parser = ["auto", "always", "never"],
        hide_possible_values = true
    )]
    color: Option<String>,
}

impl Speech {
    /// Makes these hold from here on.
    pub fn apply(&self) {
        QUIET.store(self.quiet, Ordering::Relaxed);
        VERBOSE.store(self.verbose, Ordering::Relaxed);
        let is_unwanted = |name: &str, value: &str| {
            std::env::var_os(name)
                .is_some_and(|it| !it.is_empty() && (value.is_empty() || it == value))
        };
        let is_colored = match self.color.as_deref() {
            Some("always") => true,
            Some("never") => false,
            _ => {
                let is_plain = is_unwanted("NO_COLOR", "") || is_unwanted("TERM", "dumb");
                io::stderr().is_terminal() && !is_plain
            }
        };
        COLORED.store(is_colored, Ordering::Relaxed);
    }
}

pub fn is_verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed)
}

fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

const RED: &str = "31";
const CYAN: &str = "36";
const DIM: &str = "2";

/// A word before a message, in a colour if there are any.
fn word(word: &str, color: &str) -> String {
    match COLORED.load(Ordering::Relaxed) {
        true => format!("\x1b[{color}m{word}\x1b[0m"),
        false => word.to_owned(),
    }
}

/// Shows on a terminal how far something is, in the place of what was shown before.
pub fn show_progress(line: &[u8]) {
    let mut stderr = io::stderr().lock();
    if stderr.is_terminal() && !is_quiet() {
        let _ = stderr.write_all(b"\r\x1b[K");
        let _ = stderr.write_all(line);
    }
}

/// Says what is wrong in one line and what to do about it in another.
pub fn print_error(message: &str, hint: Option<&str>) {
    // Nobody left to read it is no reason to fail differently.
    let _ = writeln!(io::stderr().lock(), "{} {message}", word("hotcell:", RED));
    if let Some(hint) = hint {
        write_hint(hint);
    }
}

/// Says what to do about something that the program has said already.
pub fn print_hint(hint: &str) {
    if !is_quiet() {
        write_hint(hint);
    }
}

fn write_hint(hint: &str) {
    let _ = writeln!(io::stderr().lock(), "{} {hint}", word("hint:", CYAN));
}

/// Says what is worth knowing, on standard error.
pub fn print_note(text: &str) {
    if !is_quiet() {
        let _ = writeln!(io::stderr().lock(), "{} {text}", word("hotcell:", DIM));
    }
}
