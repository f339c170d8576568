//! `hotcell logs`: what was run.

mod one_run;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

use super::{BAD_INPUT, OUR_FAILURE, print_error, print_note, with_causes};
use crate::language::Surroundings;
use crate::records::{Keeping, Kept, Reader, RecordsError, date, gather};
use crate::service::{CODE, LOCK, records_folder};

use one_run::show;

#[derive(clap::Args)]
pub struct Arguments {
    /// Show this run whole: its id, or how that begins [default: list the newest runs]
    run: Option<String>,
    /// Go on and show runs as they are recorded
    #[arg(short, long, conflicts_with = "run")]
    follow: bool,
    /// List this many runs
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    number: u32,
    /// Print JSON, for a list one object on each line
    #[arg(long)]
    json: bool,
    /// Print the lock of the packages that the run had, as `run --lock` takes it
    #[arg(long, requires = "run")]
    lock: bool,
}

/// How often `--follow` looks.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// How many letters of an id a list shows.
pub const SHORT: usize = 10;

pub fn main(arguments: &Arguments) -> ExitCode {
    let reader = match open() {
        Ok(reader) => reader,
        Err(code) => return code,
    };
    let shown = match &arguments.run {
        None => list(&reader, arguments),
        Some(run) => match find(&reader, run) {
            Ok(kept) if arguments.lock => lock(&reader, &kept),
            Ok(kept) => show(&reader, &kept, arguments.json),
            Err(code) => return code,
        },
    };
    shown.unwrap_or_else(|error| {
        print_error(&with_causes(&error), None);
        OUR_FAILURE.into()
    })
}

/// The records of whoever started us; without any, what to exit with.
pub fn open() -> Result<Reader, ExitCode> {
    let Some(keeping) = keeping() else {
        print_error("there is no folder for records", Some("Set HOME."));
        return Err(OUR_FAILURE.into());
    };
    let opened = gather(&keeping).and_then(|()| Reader::open(&keeping.folder));
    opened.map_err(|error| {
        let hint = match error {
            RecordsError::None(_) => Some(
                "Run something first; `[records]` in config.toml says whether runs are recorded.",
            ),
            _ => None,
        };
        print_error(&with_causes(&error), hint);
        ExitCode::from(1)
    })
}

/// Where they are. For how long is not for us to decide.
fn keeping() -> Option<Keeping> {
    Some(Keeping {
        folder: records_folder(Surroundings::from_env().state.as_deref())?,
        time: Duration::MAX,
        bytes: u64::MAX,
    })
}

/// The run that somebody means.
pub fn find(reader: &Reader, run: &str) -> Result<Kept, ExitCode> {
    let found = reader.beginning(run).map_err(|error| {
        print_error(&with_causes(&error), None);
        OUR_FAILURE
    })?;
    let shown = run.escape_debug();
    let (message, hint) = match found.len() {
        1 => return Ok(found.into_iter().next().expect("one")),
        0 => (
            format!("there is no record of a run `{shown}`"),
            "`hotcell logs` lists the newest.",
        ),
        _ => (
            format!("more than one run begins with `{shown}`"),
            "Give more letters of its id.",
        ),
    };
    print_error(&message, Some(hint));
    Err(BAD_INPUT.into())
}

fn list(reader: &Reader, arguments: &Arguments) -> Result<ExitCode, RecordsError> {
    let mut newest = reader.newest(arguments.number as usize)?;
    newest.reverse();
    let mut seen = newest.iter().map(|kept| kept.sequence).max().unwrap_or(0);
    for kept in &newest {
        print(&line(reader, kept, arguments.json)?);
    }
    if newest.is_empty() && !arguments.json && !arguments.follow {
        print_note("nothing is recorded");
    }
    match reader.dropped()? {
        0 => {}
        dropped => print_note(&format!(
            "{dropped} runs were not recorded: too many came at once"
        )),
    }
    if !arguments.follow {
        return Ok(ExitCode::SUCCESS);
    }
    loop {
        std::thread::sleep(LOOK_EVERY);
        keeping().map_or(Ok(()), |keeping| gather(&keeping))?;
        for kept in reader.after(seen)? {
            seen = kept.sequence;
            if !print(&line(reader, &kept, arguments.json)?) {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

/// Whether somebody took it.
fn print(text: &str) -> bool {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")
        .and_then(|()| stdout.flush())
        .is_ok()
}

fn line(reader: &Reader, kept: &Kept, is_json: bool) -> Result<String, RecordsError> {
    if is_json {
        return Ok(facts(kept).to_string());
    }
    let code = text(reader, kept, CODE)?;
    let code = code.lines().map(str::trim).find(|line| !line.is_empty());
    let code: String = code.unwrap_or_default().chars().take(60).collect();
    let took = match kept.ended {
        Some(ended) => duration(ended - kept.started),
        None => "-".to_owned(),
    };
    let session = kept.session.as_ref().map(|name| format!("[{name}] "));
    Ok(format!(
        "{}  {}  {:<9}  {:>8}  {:<12}  {}{}",
        kept.id.get(..SHORT).unwrap_or(&kept.id),
        date(kept.started),
        kept.status,
        took,
        plain(kept.language.as_deref().unwrap_or("-")),
        session.unwrap_or_default(),
        plain(&code),
    ))
}

/// What a record says, without what is kept beside it.
fn facts(kept: &Kept) -> Value {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    json!({
        "id": kept.id,
        "caller": kept.caller,
        "started": date(kept.started),
        "ended": kept.ended.map(date),
        "status": kept.status,
        "language": kept.language,
        "session": kept.session,
        "request": read(&kept.request),
        "result": kept.result.as_deref().map(read),
    })
}

fn lock(reader: &Reader, kept: &Kept) -> Result<ExitCode, RecordsError> {
    Ok(match reader.content(&kept.id, LOCK)? {
        Some(lock) => {
            let _ = io::stdout().write_all(&lock);
            ExitCode::SUCCESS
        }
        None => {
            print_error("the run had no packages", None);
            ExitCode::from(1)
        }
    })
}

/// Something that is kept beside a record, as text.
pub fn text(reader: &Reader, kept: &Kept, name: &str) -> Result<String, RecordsError> {
    let bytes = reader.content(&kept.id, name)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// SECURITY: what a program chose to say, for a terminal, which would obey some of it.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => plain.push(letter),
            letter if letter.is_control() => plain.extend(letter.escape_default()),
            letter => plain.push(letter),
        }
    }
    plain
}

fn duration(milliseconds: i64) -> String {
    match milliseconds {
        ..1000 => format!("{milliseconds} ms"),
        1000..60_000 => format!("{:.1} s", milliseconds as f64 / 1000.0),
        _ => format!("{} min", milliseconds / 60_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_told_nothing() {
        assert_eq!(plain("a\n\t\x1b[2Jé\r"), "a\n\t\\u{1b}[2Jé\\r");
    }
}
