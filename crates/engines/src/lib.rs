//! The interpreters that come with hotcell: they need nothing installed, and run in a cell,
//! never in the server's process.
//!
//! A cell's program is then our own binary, by another name, with the engine, the program's
//! file and its arguments. What an engine prints and how it ends is meant to look like the
//! real runtime of the language, so that one definition describes the failures of both.

mod jq;
mod js;
mod lua;
mod picture;
mod sass;
mod scheme;
mod script;
mod session;
mod sql;
mod svg;
mod wasm;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::thread;

/// A program as its engine gets it.
struct Program {
    /// The name it was started by, for messages.
    file: String,
    source: Vec<u8>,
    args: Vec<String>,
    /// Has interrupts set a flag from now on.
    interrupts: fn() -> &'static AtomicBool,
}

/// A program's end by its own fault, or a refusal to start it.
struct Failed {
    code: u8,
    /// For stderr; it ends without a line feed.
    message: String,
}

/// Runs a program to its end; the exit code.
type Engine = fn(&Program) -> Result<u8, Failed>;

/// Name and version, as `Cargo.toml` pins it. Apart from the engines themselves, so that
/// who only asks for names is not linked with them.
const VERSIONS: &[(&str, &str)] = &[
    ("jaq", "3.1.2"),
    ("lua", "5.4"),
    ("oxc", "0.146.0"),
    ("oxc-value", "0.146.0"),
    ("picture", "0.49.0"),
    ("quickjs", js::VERSION),
    ("quickjs-session", js::VERSION),
    ("quickjs-typescript", js::VERSION),
    ("quickjs-typescript-session", js::VERSION),
    ("resvg", "0.49.0"),
    ("sass", "0.13.4"),
    ("scss", "0.13.4"),
    ("sqlite", sql::VERSION),
    ("sqlite-session", sql::VERSION),
    ("steel", "0.8.3"),
    ("wasmi", "2.0.0"),
];

fn engine(name: &str) -> Option<Engine> {
    Some(match name {
        "jaq" => jq::run,
        "lua" => lua::run,
        "oxc" => js::for_node,
        "oxc-value" => js::for_value,
        "picture" => picture::run,
        "quickjs" => js::javascript,
        "quickjs-session" => js::javascript_session,
        "quickjs-typescript" => js::typescript,
        "quickjs-typescript-session" => js::typescript_session,
        "resvg" => svg::run,
        "sass" => sass::sass,
        "scss" => sass::scss,
        "sqlite" => sql::run,
        "sqlite-session" => sql::session,
        "steel" => scheme::run,
        "wasmi" => wasm::run,
        _ => return None,
    })
}

/// Parsers here recurse as deeply as a program is nested. Only what is used is taken.
const STACK: usize = 256 << 20;
/// The exit code of a program that an engine could not start, or broke over.
const OUR_FAULT: u8 = 70;

/// Whether there is an engine of this name.
pub fn exists(name: &str) -> bool {
    names().any(|known| known == name)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    VERSIONS.iter().map(|(name, _)| *name)
}

/// The version of an engine, as its own project counts.
pub fn version(name: &str) -> Option<&'static str> {
    let found = VERSIONS.iter().find(|(known, _)| *known == name);
    found.map(|(_, version)| *version)
}

/// The whole life of a cell's program: the engine, the program's file, its arguments.
///
/// One that is kept between calls asks for `interrupts`, a flag that is set when its call shall stop.
pub fn main(
    arguments: impl Iterator<Item = OsString>,
    interrupts: fn() -> &'static AtomicBool,
) -> ExitCode {
    // SECURITY: what the program starts must not look into us. We are a file that other
    // cells see too, and /proc would lead there.
    let hidden =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let result = hidden.map_err(|error| ours(format!("cannot hide: {error}")));
    let result = result
        .and_then(|()| read(arguments, interrupts))
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

fn read(
    mut arguments: impl Iterator<Item = OsString>,
    interrupts: fn() -> &'static AtomicBool,
) -> Result<(Engine, Program), Failed> {
    let mut text = || {
        arguments
            .next()
            .map(|text| text.to_string_lossy().into_owned())
    };
    let (Some(name), Some(file)) = (text(), text()) else {
        return Err(ours("an engine and a file are needed".to_owned()));
    };
    let engine = engine(&name).ok_or_else(|| ours(format!("no engine `{name}`")))?;
    let mut source = std::fs::read(&file).map_err(|error| ours(format!("{file}: {error}")))?;
    // No engine needs a byte order mark, and most would take it for a part of the program.
    if source.starts_with(b"\xef\xbb\xbf") {
        source.drain(..3);
    }
    let args = std::iter::from_fn(text).collect();
    let program = Program {
        file,
        source,
        args,
        interrupts,
    };
    Ok((engine, program))
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
