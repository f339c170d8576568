//! `hotcell replay`: runs what was recorded again, and says what differs.

mod compare;

use std::io::Write;
use std::process::ExitCode;

use serde_json::json;

use super::logs::{find, open, plain};
use super::run;
use super::{BAD_INPUT, OUR_FAILURE, explain, print_error, print_note, with_causes};
use crate::engine::Engine;
use crate::hint::Surface;
use crate::language::Surroundings;
use crate::records::{Kept, Reader, RecordsError};
use crate::request::{AskedPackages, OutlinedFile, RequestError, RunRequest};
use crate::run::Stdin;
use crate::service::{
    CODE, INPUT, LOCK, Noted, NotedStdin, STDIN, Service, Settings, read_input, sha256,
};

use compare::{Difference, compare};

#[derive(clap::Args)]
pub struct Arguments {
    /// The run, as `hotcell logs` names it: its id, or how that begins
    run: String,
    /// Set a variable that the run had, since values are not recorded; a name alone passes on the
    /// value that it has here (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Print what differs as JSON
    #[arg(long)]
    json: bool,
}

/// What to exit with when something differs.
const DIFFERS: u8 = 1;

/// Why a run cannot be run again.
#[derive(Debug, thiserror::Error)]
enum Unfit {
    #[error("{0}")]
    Because(String),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Records(#[from] RecordsError),
}

/// What is run again.
struct Again {
    request: RunRequest,
    stdin: Option<Stdin>,
    /// What is not as it was, before anything ran.
    notes: Vec<String>,
}

pub fn main(arguments: &Arguments) -> ExitCode {
    let reader = match open() {
        Ok(reader) => reader,
        Err(code) => return code,
    };
    let kept = match find(&reader, &arguments.run) {
        Ok(kept) => kept,
        Err(code) => return code,
    };
    let again = match again(&reader, &kept, arguments) {
        Ok(again) => again,
        Err(Unfit::Request(error)) => {
            explain(&with_causes(&error), error.hint(), Surface::CommandLine);
            return BAD_INPUT.into();
        }
        Err(error) => {
            print_error(&with_causes(&error), None);
            return BAD_INPUT.into();
        }
    };
    let engine = Engine::new(Surroundings::from_env());
    let service = Service::with_engine(engine, Settings::for_one_run());
    let output = match run::once(service, again.request, again.stdin) {
        Ok(output) => output,
        Err(code) => return code,
    };
    match compare(&reader, &kept, &output) {
        Ok(differences) => report(&kept, &differences, &again.notes, arguments.json),
        Err(error) => {
            print_error(&with_causes(&error), None);
            OUR_FAILURE.into()
        }
    }
}

/// The request that was recorded, with the packages and the limits that it had.
fn again(reader: &Reader, kept: &Kept, arguments: &Arguments) -> Result<Again, Unfit> {
    let noted: Result<Noted, _> = serde_json::from_str(&kept.request);
    let mut noted = noted.map_err(|_| Unfit::Because("its record cannot be read".to_owned()))?;
    if let Some(session) = &noted.outline.session {
        let message = format!(
            "it is a call of the session `{session}`, and what the calls before it left is gone"
        );
        return Err(Unfit::Because(message));
    }
    let (Some(limits), Some(code)) = (noted.limits, reader.content(&kept.id, CODE)?) else {
        let message = format!("it has no result: its status is `{}`", kept.status);
        return Err(Unfit::Because(message));
    };
    if let Some(lock) = reader.content(&kept.id, LOCK)? {
        noted.outline.packages = AskedPackages::Lock(String::from_utf8_lossy(&lock).into_owned());
    }
    // The language that was found then, and not what would be found now.
    if noted.outline.language.is_none() {
        noted.outline.language.clone_from(&kept.language);
    }
    let mut notes = Vec::new();
    let mut files = Vec::new();
    for file in &noted.outline.files {
        let content = reader.content(&kept.id, &format!("{INPUT}{}", file.path))?;
        if content.is_none() && file.host.is_none() && !file.is_folder {
            let message = format!("its file `{}` was too large to be recorded", file.path);
            return Err(Unfit::Because(message));
        }
        if content.is_none() && has_changed(file) {
            notes.push(format!("the file `{}` is not what it was", file.path));
        }
        files.push(file.input(content)?);
    }
    let variables = variables(&noted, arguments)?;
    let request = noted.outline.request(code, files, limits.asked())?;
    let stdin = match noted.stdin {
        NotedStdin::Empty => Some(Stdin::Empty),
        NotedStdin::Recorded => {
            let bytes = reader.content(&kept.id, STDIN)?;
            Some(Stdin::Bytes(bytes.unwrap_or_default()))
        }
        NotedStdin::Stream => None,
    };
    Ok(Again {
        request: request.env(variables)?,
        stdin,
        notes,
    })
}

/// The values of the variables that it had: those that are given, or that are set here.
fn variables(noted: &Noted, arguments: &Arguments) -> Result<Vec<(String, String)>, Unfit> {
    let mut values = Vec::new();
    for name in &noted.outline.variables {
        let given = arguments.env.iter().find_map(|it| {
            let (own, value) = it.split_once('=').unwrap_or((it, ""));
            (own == name).then(|| it.contains('=').then(|| value.to_owned()))
        });
        let value = given.flatten().or_else(|| std::env::var(name).ok());
        let value = value.ok_or_else(|| {
            let message = format!("the run had a variable `{name}`, whose value is not recorded: give it with `--env {name}=VALUE`");
            Unfit::Because(message)
        })?;
        values.push((name.clone(), value));
    }
    Ok(values)
}

/// Whether a file of the host is another than it was, as far as that can be told.
fn has_changed(file: &OutlinedFile) -> bool {
    let (Some(host), Some(before)) = (&file.host, &file.sha256) else {
        return false;
    };
    read_input(host).is_ok_and(|bytes| sha256(&bytes) != *before)
}

fn report(kept: &Kept, differences: &[Difference], notes: &[String], is_json: bool) -> ExitCode {
    if is_json {
        let list: Vec<_> = differences.iter().map(Difference::to_value).collect();
        let facts = json!({ "run": kept.id, "differs": list, "notes": notes });
        let _ = writeln!(std::io::stdout().lock(), "{facts:#}");
    } else {
        notes.iter().for_each(|note| print_note(note));
        let mut text = String::new();
        for difference in differences {
            text += &format!("{}\n", plain(&difference.to_string()));
        }
        if differences.is_empty() {
            text += "nothing differs\n";
        }
        let _ = std::io::stdout().write_all(text.as_bytes());
    }
    match differences.is_empty() {
        true => ExitCode::SUCCESS,
        false => DIFFERS.into(),
    }
}
