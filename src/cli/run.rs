//! `hotcell run`: one program, then the end of the process.

mod arguments;
mod grants;
pub mod out;
mod streams;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use super::{
    BAD_INPUT, OUR_FAILURE, explain, notebook, print_error, print_json, print_note, single_thread,
    with_causes,
};
use crate::caller::Caller;
use crate::display;
use crate::engine::{Engine, Rejected, RunResult, StartError};
use crate::hint;
use crate::language::Surroundings;
use crate::output::{RunOutput, Verdict};
use crate::plan::RunPlan;
use crate::run::Stdin;
use crate::service::{RunContext, Service, Settings};

pub use arguments::Arguments;
pub use grants::Grants;
use streams::{Printer, own_stdin};
pub use streams::{Stop, show};

pub const HERE: hint::Surface = hint::Surface::CommandLine;

/// `early` is an engine that starts its first sandbox already.
pub fn main(arguments: &Arguments, early: Option<Engine>) -> ExitCode {
    let json = arguments.json;
    let engine = early.unwrap_or_else(|| Engine::new(Surroundings::from_env()));
    let service = Service::with_engine(
        engine,
        Settings {
            requirement: arguments.requirement.read(),
            ..Settings::for_one_run()
        },
    );
    if let Some(file) = arguments.notebook() {
        return notebook::main(arguments, file, service);
    }
    let (plan, has_stdin) = match prepare(&service, arguments) {
        Ok(prepared) => prepared,
        Err(rejected) => {
            let message = with_causes(&rejected);
            if json {
                print_json(&RunOutput::of_rejected(&rejected, message).words(HERE));
            } else {
                explain(&message, rejected.hint(), HERE);
            }
            return BAD_INPUT.into();
        }
    };
    if arguments.plan {
        print_json(&plan);
        service.leave();
        return ExitCode::SUCCESS;
    }
    let runtime = match single_thread() {
        Ok(runtime) => runtime,
        Err(code) => return code,
    };
    // Nothing else waits for this thread yet, so it may as well block.
    let result = service
        .engine()
        .warm_up(&plan)
        .and_then(|()| runtime.block_on(execute(&service, &plan, has_stdin, json)));
    let version = json.then(|| service.engine().version(&plan)).flatten();
    service.leave();
    let result = result.map(|result| (result, version));
    report(&plan, result, arguments)
}

/// What to run, and whether our standard input is the program's.
fn prepare(service: &Service, arguments: &Arguments) -> Result<(RunPlan, bool), Rejected> {
    let (request, has_stdin) = arguments.request(service.engine().registry())?;
    let plan = match arguments.plan {
        true => service.plan(request)?,
        false => service.prepare(request)?,
    };
    Ok((plan, has_stdin))
}

async fn execute(
    service: &Service,
    plan: &RunPlan,
    has_stdin: bool,
    json: bool,
) -> Result<RunResult, StartError> {
    let stop = Stop::catch();
    let context = RunContext {
        caller: Caller::local(),
        stdin: if has_stdin {
            own_stdin()?
        } else {
            Stdin::Empty
        },
        observer: Printer {
            prints: !json,
            stop: stop.clone(),
        },
        stop: stop.stopped(),
    };
    service.run_planned(plan, context).await
}

fn report(
    plan: &RunPlan,
    result: Result<(RunResult, Option<String>), StartError>,
    arguments: &Arguments,
) -> ExitCode {
    let json = arguments.json;
    match result {
        Ok((result, version)) => {
            let verdict = Verdict::of(plan, &result);
            let out = arguments.out.as_deref();
            let kept = out.map_or(Ok(()), |folder| keep(folder, &result));
            let left = out::left_behind(&result.changes.files).filter(|_| out.is_none());
            let output = RunOutput::of_result(plan, result)
                .with_version(version)
                .words(HERE);
            if json {
                print_json(&output);
            } else {
                if io::stdout().is_terminal() {
                    print_shown(&output);
                }
                if let Some(line) = display::summary(&output.displays).filter(|_| out.is_none()) {
                    print_note(&format!("{line}; `--out DIR` writes it to a folder"));
                }
                for line in output.refusals(HERE) {
                    print_note(&line);
                }
                for note in output.notes.iter().chain(&left) {
                    print_note(note);
                }
                // A program that failed by itself has said why; the rest is for us to say.
                if let Some(error) = output.error.filter(|_| !verdict.is_said) {
                    print_error(&error.message, error.hint.as_deref());
                }
            }
            match kept {
                Ok(()) => verdict.shell_code.into(),
                Err(code) => code,
            }
        }
        Err(error) => {
            if json {
                print_json(&RunOutput::of_start_error(plan, &error).words(HERE));
            } else {
                explain(&error.to_string(), error.hint(), HERE);
            }
            OUR_FAILURE.into()
        }
    }
}

/// Writes what the program left into a folder.
fn keep(folder: &Path, result: &RunResult) -> Result<(), ExitCode> {
    let files = out::write(folder, &result.changes.files);
    let all = files.and_then(|()| out::write_shown(folder, &result.shown.displays));
    all.map_err(|error| {
        let folder = folder.display();
        let message = format!("cannot write what the program left to `{folder}`: {error}");
        explain(&message, None, HERE);
        OUR_FAILURE.into()
    })
}

/// What it showed that is text, and the value of its last expression, after all that it printed.
pub fn print_shown(output: &RunOutput) {
    let mut stdout = io::stdout().lock();
    let texts = output.displays.iter().filter_map(|it| it.text.as_deref());
    for text in texts {
        let _ = writeln!(stdout, "{}", text.trim_end());
    }
    let _ = match &output.value {
        Some(serde_json::Value::String(value)) => writeln!(stdout, "{value}"),
        Some(value) => writeln!(stdout, "{value}"),
        None => Ok(()),
    };
}
