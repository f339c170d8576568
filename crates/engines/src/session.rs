//! An engine that is kept between calls: it takes them from a FIFO, runs each, and says when it is done.
//!
//! A call is `NUMBER BYTES INPUT\n` and its code; the answer is `done NUMBER CODE BYTES\n` and its value. Number 0 is ours, and is not answered. An interrupt sets
//! a flag, which an engine that can looks at.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::atomic::Ordering;

use super::{Failed, Program, ours};

const CALLS: &str = ".home/.hotcell/calls";
const ANSWERS: &str = ".home/.hotcell/answers";
/// Bytes of a value that are shown.
const LONGEST_VALUE: usize = 16_000;
const STDIN: &str = ".home/.hotcell/stdin";

/// The exit code of a call that was interrupted, as a shell has it.
pub const INTERRUPTED: u8 = 130;

/// How a call ended, and what it came to.
pub struct Done {
    pub code: u8,
    pub value: String,
}

/// Takes calls until nobody sends any; `run` is what the engine does with one.
pub fn serve(
    program: &Program,
    mut run: impl FnMut(&Program) -> Result<Done, Failed>,
) -> Result<u8, Failed> {
    let failed = |error: io::Error| ours(format!("the session ended: {error}"));
    let mut calls = BufReader::new(File::open(CALLS).map_err(failed)?);
    let answers = fs::OpenOptions::new().write(true).open(ANSWERS);
    let mut answers = answers.map_err(failed)?;
    for path in [CALLS, ANSWERS, &program.file] {
        fs::remove_file(path).map_err(failed)?;
    }
    let interrupted = (program.interrupts)();
    let ending = program.file.rsplit('.').next().unwrap_or_default();
    while let Some((number, source, has_input)) = next_call(&mut calls).map_err(failed)? {
        let call = Program {
            file: format!("/tmp/call-{number}.{ending}"),
            source,
            args: Vec::new(),
            interrupts: program.interrupts,
        };
        // One that came late was for the call before.
        interrupted.store(false, Ordering::Relaxed);
        let input = if has_input { STDIN } else { "/dev/null" };
        let input = File::open(input).map_err(failed)?;
        rustix::stdio::dup2_stdin(input).map_err(|error| failed(error.into()))?;
        let Done { code, mut value } = run(&call).unwrap_or_else(|failed| {
            let _ = writeln!(io::stderr(), "{}", failed.message);
            let (code, value) = (failed.code, String::new());
            Done { code, value }
        });
        if value.len() > LONGEST_VALUE {
            value.truncate(value.floor_char_boundary(LONGEST_VALUE));
            value += " ...";
        }
        let _ = io::stdout().flush();
        if number == 0 {
            continue;
        }
        let answer = format!("done {number} {code} {}\n{value}", value.len());
        answers.write_all(answer.as_bytes()).map_err(failed)?;
    }
    Ok(0)
}

fn next_call(calls: &mut impl BufRead) -> io::Result<Option<(u64, Vec<u8>, bool)>> {
    let mut line = String::new();
    if calls.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut numbers = line.split_whitespace().map(str::parse::<u64>);
    let mut number = || match numbers.next() {
        Some(Ok(number)) => Ok(number),
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    };
    let (number, size, has_input) = (number()?, number()?, number()? == 1);
    let mut source = Vec::new();
    calls.take(size).read_to_end(&mut source)?;
    Ok(Some((number, source, has_input)))
}
