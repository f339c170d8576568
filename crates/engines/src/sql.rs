//! SQL by SQLite, as `sqlite3 -bail -header :memory:` would run it.
//!
//! Besides statements there are the shell's `.mode list|json|csv|table`, `.headers
//! on|off` and `.exit CODE`, and `--json` as the first argument. `?1`, `?2`, ... are
//! the program's arguments, and `stdin()` is the text on standard input.

mod table;

use std::io::{self, Read, Write};
use std::sync::atomic::Ordering;

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::Value;
use rusqlite::{Batch, Connection, Error, Statement};

use super::session::Done;
use super::{Failed, Program, line_at};
use table::{Mode, Table};

pub const VERSION: &str = "3.54.1";

/// How many steps of SQLite's machine there are between two looks at whether a call shall stop.
const STEPS: i32 = 10_000;

pub fn run(program: &Program) -> Result<u8, Failed> {
    run_in(&mut Session::new(program)?, program)
}

/// The same for calls that share one database.
pub fn session(program: &Program) -> Result<u8, Failed> {
    let mut session = Session::new(program)?;
    let interrupted = (program.interrupts)();
    let stop = move || interrupted.load(Ordering::Relaxed);
    let watched = session.connection.progress_handler(STEPS, Some(stop));
    watched.map_err(|error| super::ours(error.to_string()))?;
    super::session::serve(program, |call| {
        let (code, value) = (run_in(&mut session, call)?, String::new());
        Ok(Done { code, value })
    })
}

fn run_in(session: &mut Session, program: &Program) -> Result<u8, Failed> {
    let source = program.text()?;
    for (offset, piece) in pieces(source) {
        let result = match piece {
            Piece::Command(line) => match session.command(line) {
                Ok(Some(code)) => return Ok(code),
                Ok(None) => Ok(()),
                Err(message) => Err((offset, message)),
            },
            Piece::Statements(text) => session
                .statements(text)
                .map_err(|(within, message)| (offset + within, message)),
        };
        result.map_err(|(offset, message)| {
            let line = line_at(source.as_bytes(), offset);
            Failed {
                code: 1,
                message: format!("{}:{line}: {message}", program.file),
            }
        })?;
    }
    Ok(0)
}

/// A part of a script: the shell's own lines stand between statements.
enum Piece<'a> {
    Command(&'a str),
    Statements(&'a str),
}

fn pieces(source: &str) -> Vec<(usize, Piece<'_>)> {
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in source.split_inclusive('\n') {
        let before = source[start..at].trim_end();
        let between = before.is_empty() || before.ends_with(';');
        if between && line.starts_with('.') {
            pieces.push((start, Piece::Statements(&source[start..at])));
            pieces.push((at, Piece::Command(line.trim())));
            start = at + line.len();
        }
        at += line.len();
    }
    pieces.push((start, Piece::Statements(&source[start..])));
    pieces
}

struct Session {
    connection: Connection,
    args: Vec<String>,
    table: Table,
}

/// Where in a piece, in bytes, and what.
type Complaint = (usize, String);

impl Session {
    fn new(program: &Program) -> Result<Self, Failed> {
        let connection = Connection::open_in_memory().and_then(|connection| {
            let flags = FunctionFlags::SQLITE_UTF8;
            connection.create_scalar_function("stdin", 0, flags, |_| {
                let mut text = Vec::new();
                let read = io::stdin().lock().read_to_end(&mut text);
                read.map_err(|error| Error::UserFunctionError(error.into()))?;
                Ok(String::from_utf8_lossy(&text).into_owned())
            })?;
            Ok(connection)
        });
        let (mut args, mut table) = (program.args.clone(), Table::default());
        if args.first().is_some_and(|first| first == "--json") {
            args.remove(0);
            table.mode = Mode::Json;
        }
        Ok(Self {
            connection: connection.map_err(|error| super::ours(error.to_string()))?,
            args,
            table,
        })
    }

    /// One of the shell's own lines; an exit code if that is what it says.
    fn command(&mut self, line: &str) -> Result<Option<u8>, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [".mode", mode] => self.table.mode = Mode::named(mode)?,
            [".headers" | ".header", "on"] => self.table.headers = true,
            [".headers" | ".header", "off"] => self.table.headers = false,
            [".exit" | ".quit"] => return Ok(Some(0)),
            [".exit" | ".quit", code] => {
                let code = code
                    .parse()
                    .map_err(|_| format!("`{code}` is no exit code"))?;
                return Ok(Some(code));
            }
            _ => {
                return Err(format!(
                    "`{line}` is not known here; there are .mode, .headers and .exit"
                ));
            }
        }
        Ok(None)
    }

    fn statements(&self, text: &str) -> Result<(), Complaint> {
        let mut batch = Batch::new(&self.connection, text);
        let mut done = 0;
        loop {
            let statement = batch.next().map_err(|error| match error {
                Error::SqlInputError {
                    msg, sql, offset, ..
                } => {
                    let within = usize::try_from(offset).unwrap_or(0);
                    (text.len().saturating_sub(sql.len()) + within, msg)
                }
                other => (done, said(other)),
            })?;
            let Some(mut statement) = statement else {
                return Ok(());
            };
            // With its leading blanks and comments: SQLite keeps what it was given.
            let sql = statement.expanded_sql().unwrap_or_default();
            let blank = sql.len() - sql.trim_start().len();
            self.statement(&mut statement)
                .map_err(|error| ((done + blank).min(text.len()), said(error)))?;
            done += sql.len();
        }
    }

    fn statement(&self, statement: &mut Statement<'_>) -> rusqlite::Result<()> {
        for at in 1..=statement.parameter_count() {
            statement.raw_bind_parameter(at, self.args.get(at - 1))?;
        }
        let names = statement.column_names();
        let names: Vec<String> = names.map(str::to_owned).collect();
        let mut rows = statement.raw_query();
        let mut output = io::BufWriter::new(io::stdout().lock());
        let mut printer = self.table.start(&names);
        let printed =
            |result: io::Result<()>| result.map_err(|error| Error::UserFunctionError(error.into()));
        while let Some(row) = rows.next()? {
            let values = (0..names.len()).map(|at| row.get::<_, Value>(at));
            let values = values.collect::<rusqlite::Result<Vec<_>>>()?;
            printed(printer.row(&mut output, values))?;
        }
        printed(printer.end(&mut output).and_then(|()| output.flush()))
    }
}

/// SQLite's own words, without the number of the error.
fn said(error: Error) -> String {
    match error {
        Error::SqliteFailure(_, Some(message)) => message,
        other => other.to_string(),
    }
}
