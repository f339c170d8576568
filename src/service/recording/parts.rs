//! A record's parts: the JSON of what was asked for, and what is kept beside it.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Facts;
use crate::output::RunOutput;
use crate::plan::RunPlan;
use crate::records::Record;
use crate::request::{AskedLimits, FileSource, InputFile, Outline};
use crate::secret::Redactor;

/// The names of what is kept beside a record.
pub const CODE: &str = "code";
pub const STDIN: &str = "stdin";
/// As the answer had it: of long output both ends.
pub const STDOUT: &str = "text/stdout";
pub const STDERR: &str = "text/stderr";
/// Before the path of a file that came with the request.
pub const INPUT: &str = "input/";
pub const LOCK: &str = "lock";

/// How many bytes of a request's files are kept. Of larger ones not even the hash is known.
const MOST_INPUT: u64 = 8 << 20;

/// What was asked for, as it is written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Noted {
    #[serde(flatten)]
    pub outline: Outline,
    /// Those that it had; none if nothing ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<NotedLimits>,
    #[serde(default)]
    pub stdin: NotedStdin,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct NotedLimits {
    /// Seconds.
    pub timeout: f64,
    pub memory: u64,
    pub processes: u32,
    pub cpus: f64,
    pub output: u64,
}

/// What a program could read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotedStdin {
    #[default]
    Empty,
    /// It is kept beside the record.
    Recorded,
    /// What came over a pipe, which is not kept.
    Stream,
}

impl NotedLimits {
    fn of(plan: &RunPlan) -> Self {
        let launch = &plan.launch;
        Self {
            timeout: launch.timeout.as_secs_f64(),
            memory: launch.limits.memory,
            processes: launch.limits.tasks,
            cpus: launch.limits.cpus,
            output: launch.output_limit,
        }
    }

    /// The same, to be asked for again.
    pub fn asked(&self) -> AskedLimits {
        AskedLimits {
            timeout: Duration::try_from_secs_f64(self.timeout).ok(),
            memory: Some(self.memory),
            tasks: Some(self.processes),
            cpus: Some(self.cpus),
            output: Some(self.output),
        }
    }
}

/// The record of a run that goes on.
pub fn running(facts: &Facts) -> Record {
    let noted = Noted {
        outline: facts.outline.clone(),
        limits: None,
        stdin: facts.stdin.0,
    };
    Record {
        id: facts.id.clone(),
        caller: facts.caller.clone(),
        started: facts.started,
        ended: None,
        status: "running".to_owned(),
        language: facts.outline.language.clone(),
        session: facts.outline.session.clone(),
        request: json(&noted, facts.redactor.as_ref()),
        result: None,
        contents: vec![(CODE.to_owned(), clean(facts, &facts.code))],
    }
}

/// The record of a run that has ended.
pub fn record(facts: &Facts, plan: Option<&RunPlan>, mut output: RunOutput) -> Record {
    let mut contents = vec![(CODE.to_owned(), facts.code.clone())];
    contents.extend(named(STDIN, facts.stdin.1.clone()));
    contents.extend(named(STDOUT, std::mem::take(&mut output.stdout)));
    contents.extend(named(STDERR, std::mem::take(&mut output.stderr)));
    let lock = output.packages.as_mut();
    let lock = lock.map(|packages| std::mem::take(&mut packages.lock));
    contents.extend(named(LOCK, lock.unwrap_or_default()));
    let mut outline = facts.outline.clone();
    let placed = plan.map_or(&[][..], |plan| &plan.launch.files);
    note_files(&mut outline, placed, &mut contents);
    for (_, bytes) in &mut contents {
        *bytes = clean(facts, bytes);
    }
    let noted = Noted {
        outline,
        limits: plan.map(NotedLimits::of),
        stdin: facts.stdin.0,
    };
    Record {
        ended: Some(SystemTime::now()),
        status: output.status.to_string(),
        language: output.language.clone(),
        request: json(&noted, facts.redactor.as_ref()),
        result: Some(json(&output, facts.redactor.as_ref())),
        contents,
        ..running(facts)
    }
}

fn named(name: &str, bytes: impl Into<Vec<u8>>) -> Option<(String, Vec<u8>)> {
    let bytes = bytes.into();
    (!bytes.is_empty()).then(|| (name.to_owned(), bytes))
}

/// Hashes the files of a request, and keeps those that it brought along.
fn note_files(outline: &mut Outline, placed: &[InputFile], contents: &mut Vec<(String, Vec<u8>)>) {
    let mut room = MOST_INPUT;
    for file in &mut outline.files {
        let source = placed.iter().find(|it| it.path.as_str() == file.path);
        let bytes = match source.map(|it| &it.source) {
            Some(FileSource::Bytes(bytes)) if bytes.len() as u64 <= room => bytes.clone(),
            Some(FileSource::Kept(kept)) if kept.len() <= room => match kept.read(0, usize::MAX) {
                Ok(bytes) => bytes,
                Err(_) => continue,
            },
            Some(FileSource::HostFile(path)) => match read(path, room) {
                Ok(bytes) => bytes,
                Err(_) => continue,
            },
            _ => continue,
        };
        room -= bytes.len() as u64;
        file.sha256 = Some(sha256(&bytes));
        if file.host.is_none() {
            contents.push((format!("{INPUT}{}", file.path), bytes));
        }
    }
}

/// A whole file of the host, if it is not too large to be looked at.
pub fn read_input(path: &Path) -> io::Result<Vec<u8>> {
    read(path, MOST_INPUT)
}

fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other("it is too large")),
        false => Ok(bytes),
    }
}

pub fn sha256(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Without the values of secrets.
fn clean(facts: &Facts, bytes: &[u8]) -> Vec<u8> {
    match &facts.redactor {
        None => bytes.to_vec(),
        Some(redactor) => redactor.clean(bytes),
    }
}

fn json(value: &impl Serialize, redactor: Option<&Redactor>) -> String {
    let mut value = serde_json::to_value(value).unwrap_or_default();
    if let Some(redactor) = redactor {
        clean_texts(&mut value, redactor);
    }
    value.to_string()
}

/// Text by text: as JSON a value may be written otherwise than it is.
fn clean_texts(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => {
            let clean = redactor.clean(text.as_bytes());
            *text = String::from_utf8_lossy(&clean).into_owned();
        }
        Value::Array(items) => items.iter_mut().for_each(|it| clean_texts(it, redactor)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|it| clean_texts(it, redactor)),
        _ => {}
    }
}
