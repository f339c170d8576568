//! `hotcell run report.ipynb`: all cells of a notebook in one session, and what they came to back in its file.

mod document;
mod outputs;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use super::call_output::Listener;
use super::run::{Arguments, HERE, Stop, out};
use super::session::Session;
use super::{
    BAD_INPUT, OUR_FAILURE, explain, print_error, print_json, print_note, show_progress,
    single_thread, with_causes,
};
use crate::language::{Definition, Magic, Registry};
use crate::output::{RunOutput, Status};
use crate::random::random_name;
use crate::run::Interrupt;
use crate::service::Service;

use document::{Cell, Document};

/// What a notebook is in that does not say it.
const USUAL: &str = "python";

/// How far a notebook came.
struct Progress {
    /// Cells that were run.
    cells: u64,
    /// The first that failed, of those that its writer does not expect to.
    failed: Option<(u64, RunOutput)>,
}

pub fn main(arguments: &Arguments, file: &Path, service: Service) -> ExitCode {
    let mut document = match read(file) {
        Ok(document) => document,
        Err(code) => return code,
    };
    if arguments.has_words() {
        let hint = "Set variables with `--env NAME=value`.";
        print_error("a notebook takes no arguments", Some(hint));
        return BAD_INPUT.into();
    }
    let language = arguments.language.clone();
    let language = language.unwrap_or_else(|| language_of(&document, service.engine().registry()));
    let to = Destination::of(arguments.out.as_deref(), file);
    let folder = to.folder();
    let session = match Session::new(service, &language, &arguments.grants) {
        Ok(session) => session.wants_files(folder.is_some()),
        Err(error) => {
            explain(&with_causes(&error), error.hint(), HERE);
            return BAD_INPUT.into();
        }
    };
    if arguments.plan {
        return plan(&session, document.cells());
    }
    let runtime = match single_thread() {
        Ok(runtime) => runtime,
        Err(code) => return code,
    };
    let run = run(&session, &mut document, arguments.allow_errors, folder);
    let progress = runtime.block_on(run);
    drop(runtime);
    let Session { service, .. } = session;
    if let Some(service) = std::sync::Arc::into_inner(service) {
        service.leave();
    }
    report(&progress, &document, &to, arguments.json)
}

/// Runs the cells one after the other, until one fails that should not.
async fn run(
    session: &Session,
    document: &mut Document,
    allow_errors: bool,
    folder: Option<&Path>,
) -> Progress {
    let stop = Stop::catch(Interrupt::default());
    let magic = session.definition().and_then(magic_of).cloned();
    let mut progress = Progress {
        cells: 0,
        failed: None,
    };
    let all = document.cells().len();
    for (at, cell) in document.cells().iter_mut().enumerate() {
        let code = cell.code().filter(|_| progress.failed.is_none());
        let Some(code) = code else {
            // What an earlier run left would look like this one's.
            cell.set(None, Vec::new());
            continue;
        };
        show_progress(format!("cell {} of {all}", at + 1).as_bytes());
        let own = magic
            .as_ref()
            .map_or(code.clone(), |it| without_magic(&code, it));
        let (mut output, heard) = session.call(own, Listener, stop.clone().stopped()).await;
        let number = progress.cells + 1;
        if let (Some(magic), Some(error)) = (&magic, &mut output.error)
            && let Some(line) = code.lines().find(|line| magic.all.is_in(line))
            && !magic.skip.is_in(line)
        {
            let line = plain(line);
            error.hint = Some(format!(
                "`{line}` is for Jupyter alone; write it in the notebook's language."
            ));
        }
        if let Some(folder) = folder {
            let stored = session.service.outputs(session.caller());
            if let Err(error) = out::write_stored(folder, stored, &output.files) {
                print_note(&format!("cannot write to `{}`: {error}", folder.display()));
            }
        }
        let has_run = output.status != Status::Rejected || progress.cells > 0;
        if has_run {
            let outputs = outputs::outputs(heard, &output, number, magic.as_ref());
            progress.cells = number;
            cell.set(Some(number), outputs);
        }
        let is_expected = (allow_errors || cell.may_fail()) && output.status == Status::Failed;
        if output.error.is_some() && !is_expected {
            progress.failed = Some((at as u64 + 1, output));
        }
    }
    show_progress(b"");
    progress
}

/// Writes the notebook, says how it went, and with what to exit.
fn report(progress: &Progress, document: &Document, to: &Destination, json: bool) -> ExitCode {
    let mut code = 0;
    if progress.cells > 0 || progress.failed.is_none() {
        let written = document.write().map_err(io::Error::from);
        if let Err(error) = written.and_then(|bytes| to.write(&bytes)) {
            print_error(&format!("cannot write the notebook: {error}"), None);
            code = OUR_FAILURE;
        }
    }
    let error = progress.failed.as_ref().map(|(at, output)| (at, output));
    if json {
        let status = error.map_or(Status::Ok, |(_, output)| output.status);
        let failed = error.map(|(at, output)| json!({ "cell": at, "error": output.error }));
        print_json(&json!({ "status": status, "cells": progress.cells, "failed": failed }));
    } else if let Some((at, output)) = error {
        let error = output.error.as_ref();
        let (message, hint) = error.map_or(("", None), |it| (&it.message[..], it.hint.as_deref()));
        let last = output.stderr.trim_end().lines().last();
        let last = last.filter(|_| output.status == Status::Failed);
        let message = format!("cell {at}: {message}");
        let message = last.map_or(message.clone(), |last| {
            format!("{message}: {}", plain(last))
        });
        print_error(&message, hint);
    } else if let Destination::File(file) | Destination::Back(file) = to {
        let (cells, file) = (progress.cells, file.display());
        print_note(&format!("ran {cells} cells; their outputs are in {file}"));
    }
    match progress.failed {
        Some((_, ref output)) => output.shell_code.max(1).into(),
        None => code.into(),
    }
}

/// A line of a notebook or of what it printed, for a terminal.
fn plain(line: &str) -> String {
    let line = line.trim().chars().filter(|it| !it.is_control());
    line.take(300).collect()
}

/// Prints what the first cell would be run with.
fn plan(session: &Session, cells: &[Cell]) -> ExitCode {
    let first = cells.iter().find_map(Cell::code);
    let request = session.request(first.unwrap_or_default());
    match request
        .map_err(Into::into)
        .and_then(|it| session.service.plan(it))
    {
        Ok(plan) => print_json(&plan),
        Err(rejected) => {
            explain(&with_causes(&rejected), rejected.hint(), HERE);
            return BAD_INPUT.into();
        }
    }
    ExitCode::SUCCESS
}

fn read(file: &Path) -> Result<Document, ExitCode> {
    let refuse = |why: String, hint: Option<&str>| {
        print_error(&format!("cannot run `{}`: {why}", file.display()), hint);
        ExitCode::from(BAD_INPUT)
    };
    let mut text = String::new();
    let opened = File::open(file).map(|file| file.take(document::LARGEST + 1));
    let read = opened.and_then(|mut file| file.read_to_string(&mut text));
    match read {
        Err(error) => Err(refuse(error.to_string(), Some("Check the path."))),
        Ok(read) if read as u64 > document::LARGEST => {
            Err(refuse("it is larger than 64 MiB".to_owned(), None))
        }
        Ok(_) => Document::parse(&text).map_err(|error| refuse(error.to_string(), error.hint())),
    }
}

/// The first of its names that is known; the last word is the registry's, and what it says of it the caller's.
fn language_of(document: &Document, registry: &Registry) -> String {
    let names = document.languages();
    let known = names.iter().find(|name| registry.find(name).is_ok());
    let name = known.or(names.first()).cloned();
    name.unwrap_or_else(|| USUAL.to_owned())
}

fn magic_of(definition: &Definition) -> Option<&Magic> {
    definition.session.as_ref()?.notebook.as_ref()
}

/// A cell without the lines that only Jupyter reads, and with as many lines.
fn without_magic(code: &str, magic: &Magic) -> String {
    let line = |line: &str| match magic.skip.is_in(line) {
        true => {
            let start = line.len() - line.trim_start().len();
            format!("{}{}\n", &line[..start], magic.instead)
        }
        false => line.to_owned(),
    };
    code.split_inclusive('\n').map(line).collect()
}

/// Where the notebook goes.
enum Destination {
    /// To where it was.
    Back(PathBuf),
    File(PathBuf),
    /// Into a folder, with the files that its cells leave.
    Folder(PathBuf, PathBuf),
    Stdout,
}

impl Destination {
    fn of(out: Option<&Path>, file: &Path) -> Self {
        match out {
            None => Self::Back(fs::canonicalize(file).unwrap_or_else(|_| file.to_owned())),
            Some(out) if out == Path::new("-") => Self::Stdout,
            Some(out) if out.extension().is_some_and(|it| it == "ipynb") && !out.is_dir() => {
                Self::File(out.to_owned())
            }
            Some(out) => {
                let name = file.file_name().unwrap_or_default();
                Self::Folder(out.to_owned(), out.join(name))
            }
        }
    }

    fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder, _) => Some(folder),
            _ => None,
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Back(file) | Self::File(file) => replace(file, bytes),
            Self::Folder(folder, file) => {
                fs::create_dir_all(folder)?;
                replace(file, bytes)
            }
            Self::Stdout => io::stdout().lock().write_all(bytes),
        }
    }
}

/// Writes a file whole or not at all: whoever reads it meanwhile has what was there.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mode = fs::metadata(path).map_or(0o644, |it| it.permissions().mode() & 0o777);
    let aside = path.with_file_name(format!(".{}.tmp", random_name()));
    let mut open = fs::OpenOptions::new();
    let mut file = open.write(true).create_new(true).mode(mode).open(&aside)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let moved = written.and_then(|()| fs::rename(&aside, path));
    if moved.is_err() {
        let _ = fs::remove_file(&aside);
    }
    moved
}
