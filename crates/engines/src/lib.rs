//! The interpreters in the binary: they need nothing installed, and run in a cell,
//! never in the server's process.
//!
//! A cell's program is this same binary with [`hook`]'s word as its name, then the
//! engine, the program's file and its arguments. What an engine prints and how it
//! ends is meant to look like the real runtime of the language, so that one
//! definition describes the failures of both.

mod jq;
mod js;
mod lua;
mod sass;
mod scheme;
mod script;
mod sql;
mod svg;
mod wasm;

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;

/// A program as its engine gets it.
struct Program {
    /// The name it was started by, for messages.
    file: String,
    source: Vec<u8>,
    args: Vec<String>,
}

/// A program's end by its own fault, or a refusal to start it.
struct Failed {
    code: u8,
    /// For stderr; it ends without a line feed.
    message: String,
}

/// Runs a program to its end; the exit code.
type Engine = fn(&Program) -> Result<u8, Failed>;

/// Name, version, and what it does. The versions are those that `Cargo.toml` pins.
const ENGINES: &[(&str, &str, Engine)] = &[
    ("jaq", "3.1.2", jq::run),
    ("lua", "5.4", lua::run),
    ("oxc", "0.146.0", js::for_node),
    ("quickjs", js::VERSION, js::javascript),
    ("quickjs-typescript", js::VERSION, js::typescript),
    ("resvg", "0.49.0", svg::run),
    ("sass", "0.13.4", sass::sass),
    ("scss", "0.13.4", sass::scss),
    ("sqlite", sql::VERSION, sql::run),
    ("steel", "0.8.3", scheme::run),
    ("wasmi", "2.0.0", wasm::run),
];

/// Parsers here recurse as deeply as a program is nested. Only what is used is taken.
const STACK: usize = 256 << 20;
/// The exit code of a program that an engine could not start, or broke over.
const OUR_FAULT: u8 = 70;

/// Whether there is an engine of this name.
pub fn exists(name: &str) -> bool {
    names().any(|known| known == name)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    ENGINES.iter().map(|(name, ..)| *name)
}

/// The version of an engine, as its own project counts.
pub fn version(name: &str) -> Option<&'static str> {
    let found = ENGINES.iter().find(|(known, ..)| *known == name);
    found.map(|(_, version, _)| *version)
}

/// Becomes an engine if this process was started under the name `word`; else returns.
pub fn hook(word: &str) -> Option<ExitCode> {
    let mut arguments = env::args_os();
    arguments
        .next()
        .is_some_and(|name| name == word)
        .then(|| main(arguments))
}

fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    // SECURITY: what the program starts must not look into us. Our binary lies on a
    // file that other cells see too, and /proc would lead there.
    let hidden =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let result = hidden.map_err(|error| ours(format!("cannot hide: {error}")));
    let result = result
        .and_then(|()| read(arguments))
        .and_then(|(engine, program)| {
            let work = thread::Builder::new().stack_size(STACK);
            let running = work
                .spawn(move || engine(&program))
                .map_err(|error| ours(format!("cannot start a thread: {error}")))?;
            // A panic has printed its reason.
            running
                .join()
                .unwrap_or_else(|_| Err(ours("the engine broke".to_owned())))
        });
    let code = result.unwrap_or_else(|failed| {
        // Nobody is left to be told if stderr is gone.
        let _ = writeln!(io::stderr(), "{}", failed.message);
        failed.code
    });
    code.into()
}

fn read(mut arguments: impl Iterator<Item = OsString>) -> Result<(Engine, Program), Failed> {
    let mut text = || {
        arguments
            .next()
            .map(|text| text.to_string_lossy().into_owned())
    };
    let (Some(name), Some(file)) = (text(), text()) else {
        return Err(ours("an engine and a file are needed".to_owned()));
    };
    let engine = ENGINES.iter().find(|(known, ..)| *known == name);
    let Some((.., engine)) = engine else {
        return Err(ours(format!("no engine `{name}`")));
    };
    let source = std::fs::read(&file).map_err(|error| ours(format!("{file}: {error}")))?;
    let args = std::iter::from_fn(text).collect();
    Ok((*engine, Program { file, source, args }))
}

impl Program {
    /// The source as text; most languages have no other.
    fn text(&self) -> Result<&str, Failed> {
        std::str::from_utf8(&self.source).map_err(|error| {
            let before = &self.source[..error.valid_up_to()];
            Failed {
                code: 1,
                message: format!(
                    "{}:{}: not UTF-8 text",
                    self.file,
                    line_at(before, before.len())
                ),
            }
        })
    }
}

/// The line, counted from 1, that holds the byte at `offset`.
fn line_at(source: &[u8], offset: usize) -> usize {
    let before = &source[..offset.min(source.len())];
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

fn ours(message: String) -> Failed {
    Failed {
        code: OUR_FAULT,
        message: format!("hotcell: {message}"),
    }
}
