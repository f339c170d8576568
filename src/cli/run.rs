//! `hotcell run`: one program, then the end of the process.

mod arguments;
mod beside;
mod grants;
mod on_host;
pub mod out;
mod project;
mod streams;
mod terminal;
mod two_words;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::Value;

use on_host::Missed;

use super::{
    BAD_INPUT, OUR_FAILURE, explain, is_verbose, notebook, print_error, print_hint, print_json,
    print_note, saved, single_thread, with_causes,
};
use crate::caller::Caller;
use crate::display::{self, Displayed};
use crate::engine::{Engine, Rejected, RunResult, StartError};
use crate::hint;
use crate::output::{RunOutput, Verdict};
use crate::plan::RunPlan;
use crate::publish::SAVED;
use crate::records::{self, Keeping};
use crate::request::RunRequest;
use crate::run::{Console, Interrupt, Stdin};
use crate::service::{Facts, NotedStdin, RunContext, Service, Settings, keeping};
use crate::upstream::Functions;

pub use arguments::{Arguments, Asked, is_code, is_program};
pub use grants::Grants;
use streams::{Printer, own_stdin};
pub use streams::{Stop, show};
use terminal::OwnTerminal;

pub const HERE: hint::Surface = hint::Surface::CommandLine;
/// As of any program whose reader has gone: 128 and the number of SIGPIPE.
const BROKEN_PIPE: u8 = 128 + 13;

/// `early` is an engine that starts its first sandbox already.
pub fn main(arguments: Arguments, early: Option<Engine>) -> ExitCode {
    let engine = early.unwrap_or_else(Engine::early);
    let engine = engine.with_isolation(arguments.requirement.isolation());
    let arguments = &arguments.find_program(engine.registry());
    let json = arguments.json;
    let saved = saved::tools(engine.config().ok(), engine.surroundings());
    let engine = match &saved {
        Some(saved) => engine.with_functions(SAVED, saved.clone() as Arc<dyn Functions>),
        None => engine,
    };
    let service = Service::with_engine(
        engine.with_discovery(arguments.discover),
        Settings {
            requirement: arguments.requirement.read(),
            ..Settings::for_one_run()
        },
    );
    if let Some(file) = arguments.notebook() {
        return notebook::main(arguments, file, service);
    }
    let service = Arc::new(service);
    if let Some(saved) = &saved {
        saved.run_by(&service);
    }
    let Prepared {
        mut plan,
        has_stdin,
        record,
    } = match prepare(&service, arguments) {
        Ok(prepared) => prepared,
        Err(rejected) => {
            let words = two_words::words(&rejected, arguments);
            let code = match words {
                Some(_) => two_words::EXIT_CODE,
                None => BAD_INPUT,
            };
            let (message, hint) =
                words.unwrap_or_else(|| (with_causes(&rejected), rejected.hint()));
            if json {
                print_json(&RunOutput::of_rejected(&rejected, message).words(HERE));
            } else {
                explain(&message, hint, HERE);
            }
            return code.into();
        }
    };
    if arguments.plan {
        print_json(&with_command(&service, &plan));
        leave(service);
        return ExitCode::SUCCESS;
    }
    let runtime = match single_thread() {
        Ok(runtime) => runtime,
        Err(code) => return code,
    };
    let terminal = match has_stdin && !json && !arguments.no_tty {
        true => OwnTerminal::find(),
        false => None,
    };
    if let Some(terminal) = &terminal {
        terminal.plan_for(&mut plan);
    }
    let setting = Setting {
        has_stdin,
        json,
        terminal: terminal.as_ref(),
    };
    // Nothing else waits for this thread yet, so it may as well block.
    let result = service
        .engine()
        .warm_up(&plan)
        .and_then(|()| runtime.block_on(execute(&service, &plan, setting)));
    drop(terminal);
    let version = json.then(|| service.engine().version(&plan)).flatten();
    leave(service);
    let nobody_reads = result.as_ref().is_ok_and(|(_, is_unread)| *is_unread);
    let result = result.map(|(result, _)| (result, version));
    let (mut code, output) = report(&plan, result, arguments, nobody_reads);
    if nobody_reads {
        code = BROKEN_PIPE.into();
    }
    if let Some((keeping, facts)) = record {
        let written = records::leave(&keeping, &facts.record(Some(&plan), output));
        if let Err(error) = written {
            tracing::warn!(%error, "the run was not recorded");
        }
    }
    code
}

/// Ends with the process, unless something still runs for it.
fn leave(service: Arc<Service>) {
    if let Some(service) = Arc::into_inner(service) {
        service.leave();
    }
}

/// A program that is about to run.
struct Prepared {
    plan: RunPlan,
    /// Whether our standard input is the program's.
    has_stdin: bool,
    /// Where the run is recorded when all is printed, and what is known of it already.
    record: Option<(Keeping, Facts)>,
}

fn prepare(service: &Service, arguments: &Arguments) -> Result<Prepared, Rejected> {
    let engine = service.engine();
    let Asked {
        request,
        has_stdin,
        notes,
    } = arguments.request(engine.registry())?;
    if arguments.plan {
        let mut plan = service.plan(engine.isolated(request, &Caller::local())?)?;
        plan.notes.extend(notes);
        return Ok(Prepared {
            plan,
            has_stdin,
            record: None,
        });
    }
    let state = engine.surroundings().state.as_deref();
    let keeping = keeping(service.config(), state).filter(|_| !arguments.no_record);
    let record = keeping.map(|keeping| {
        let redactor = service.config().and_then(|config| config.redactor());
        let stdin = match has_stdin {
            true => NotedStdin::Stream,
            false => NotedStdin::Empty,
        };
        let facts = Facts::of(&request, (stdin, Vec::new()), &Caller::local());
        (keeping, facts.without_secrets(redactor))
    });
    let mut plan = service.prepare(request, &Caller::local())?;
    plan.notes.extend(notes);
    Ok(Prepared {
        plan,
        has_stdin,
        record,
    })
}

/// A plan, with the command of the container engine where one makes its sandbox.
fn with_command(service: &Service, plan: &RunPlan) -> Value {
    let mut shown = serde_json::to_value(plan).unwrap_or_default();
    match service.engine().provider_of(plan).command(&plan.launch) {
        Ok(Some(words)) => shown["container"] = words.into(),
        Ok(None) => {}
        Err(error) => {
            if let Some(notes) = shown["notes"].as_array_mut() {
                notes.push(error.to_string().into());
            }
        }
    }
    shown
}

/// What a program is run with that is not its plan's.
struct Setting<'a> {
    has_stdin: bool,
    json: bool,
    /// Ours, if it becomes the program's.
    terminal: Option<&'a OwnTerminal>,
}

/// Runs a plan; what came of it, and whether that was for want of a reader.
async fn execute(
    service: &Service,
    plan: &RunPlan,
    setting: Setting<'_>,
) -> Result<(RunResult, bool), StartError> {
    let interrupt = Interrupt::default();
    let stop = Stop::catch(interrupt.clone());
    let context = RunContext {
        caller: Caller::local(),
        stdin: if setting.has_stdin {
            own_stdin()?
        } else {
            Stdin::Empty
        },
        observer: Printer {
            prints: !setting.json,
            stop: stop.clone(),
        },
        approver: None,
        log: None,
        console: Some(Console {
            interrupt,
            screen: setting.terminal.map(OwnTerminal::screen),
        }),
        stop: stop.clone().stopped(),
    };
    let result = service.run_planned(plan, context).await?;
    Ok((result, stop.is_unread()))
}

/// Runs a request to its end and prints nothing of it; what came of it, or what to exit with. Without `stdin` ours is the program's.
pub fn once(
    service: Service,
    request: RunRequest,
    stdin: Option<Stdin>,
) -> Result<RunOutput, ExitCode> {
    let plan = service.prepare(request, &Caller::local());
    let plan = plan.map_err(|rejected| {
        explain(&with_causes(&rejected), rejected.hint(), HERE);
        BAD_INPUT
    })?;
    let runtime = single_thread()?;
    let result = service.engine().warm_up(&plan).and_then(|()| {
        runtime.block_on(async {
            let stop = Stop::catch(Interrupt::default());
            let observer = Printer {
                prints: false,
                stop: stop.clone(),
            };
            let stdin = stdin.map_or_else(own_stdin, Ok)?;
            let context = RunContext::new(Caller::local(), observer).stdin(stdin);
            service
                .run_planned(&plan, context.until(stop.stopped()))
                .await
        })
    });
    service.leave();
    match result {
        Ok(result) => Ok(RunOutput::of_result(&plan, result).words(HERE)),
        Err(error) => {
            explain(&error.to_string(), error.hint(), HERE);
            Err(OUR_FAILURE.into())
        }
    }
}

fn report(
    plan: &RunPlan,
    result: Result<(RunResult, Option<String>), StartError>,
    arguments: &Arguments,
    is_quiet: bool,
) -> (ExitCode, RunOutput) {
    let json = arguments.json;
    match result {
        Ok((result, version)) => {
            let verdict = Verdict::of(plan, &result);
            let out = arguments.out.as_deref();
            let kept = out.map_or(Ok(()), |folder| keep(folder, &result));
            let left = out::left_behind(&result.changes.files).filter(|_| out.is_none());
            let mut output = RunOutput::of_result(plan, result)
                .with_version(version)
                .words(HERE);
            let on_host = missed(&output, arguments);
            if let (Some(error), Some(hint)) = (&mut output.error, &on_host) {
                error.hint = Some(hint.clone());
            }
            if json {
                print_json(&output);
            } else if !is_quiet {
                let mut is_seen: fn(&Displayed) -> bool = |_| false;
                if io::stdout().is_terminal() {
                    print_shown(&output);
                    is_seen = Displayed::is_whole_text;
                }
                let line = display::summary(&output.displays, is_seen);
                if let Some(line) = line.filter(|_| out.is_none()) {
                    print_note(&format!("{line}; `--out DIR` writes it to a folder"));
                }
                let refusals = output.refusals(HERE);
                for line in &refusals {
                    print_note(line);
                }
                for note in output.notes.iter().chain(&left) {
                    print_note(note);
                }
                // A program that failed by itself has said why; the rest is for us to say.
                if let Some(error) = &output.error {
                    let is_new = |hint: &&str| !refusals.iter().any(|line| line.ends_with(hint));
                    let hint = error.hint.as_deref().filter(is_new);
                    match (verdict.is_said, hint) {
                        (false, hint) => print_error(&error.message, hint),
                        (true, Some(hint)) => print_hint(hint),
                        (true, None) => {}
                    }
                }
                if is_verbose() {
                    print_note(&in_short(&output));
                }
            }
            let code = match kept {
                Ok(()) => verdict.shell_code.into(),
                Err(code) => code,
            };
            (code, output)
        }
        Err(error) => {
            let output = RunOutput::of_start_error(plan, &error).words(HERE);
            if json {
                print_json(&output);
            } else {
                explain(&error.to_string(), error.hint(), HERE);
            }
            (OUR_FAILURE.into(), output)
        }
    }
}

/// What to do about a file that the program missed, if it is there on this machine.
fn missed(output: &RunOutput, arguments: &Arguments) -> Option<String> {
    output.error.as_ref()?;
    let here = std::env::current_dir().ok()?;
    let beside = here.join(arguments.folder().unwrap_or(Path::new("")));
    // At a terminal all that it said is in one stream.
    let said = [output.stderr.as_str(), output.stdout.as_str()].join("\n");
    let own = arguments.file().map(|it| here.join(it));
    let found = match on_host::find(&said, &[&here, &beside], own.as_deref())? {
        Missed::Here(found) => found,
        Missed::Whole(path) => {
            let what = "is on this machine and not in the sandbox";
            return Some(format!("`{}` {what}: {}", path.display(), shown(&path)));
        }
        Missed::Elsewhere(path) => {
            // Nobody looked, so whoever knows more comes first.
            if output.error.as_ref()?.hint.is_some() {
                return None;
            }
            let what = "is not in the sandbox. If it is on this machine";
            return Some(format!("`{}` {what}, {}", path.display(), shown(&path)));
        }
    };
    let name = found.strip_prefix(&beside).unwrap_or(&found).display();
    let path = found.strip_prefix(&here).unwrap_or(&found).display();
    let flag = match path.to_string() == name.to_string() && !path.to_string().contains('/') {
        true => format!("--file {path}"),
        false => format!("--file {path}:{name}"),
    };
    Some(format!(
        "`{path}` is on this machine and not in the sandbox: give it with `{flag}`."
    ))
}

/// How a program finds a path where it is on this machine: by its folder, as a mount is one.
fn shown(path: &Path) -> String {
    let folder = match path.extension() {
        Some(_) => path.parent().unwrap_or(path),
        None => path,
    };
    let folder = folder.display();
    format!("show its folder with `--mount {folder}:{folder}:ro`.")
}

/// How the program was run, for who wants to know more.
fn in_short(output: &RunOutput) -> String {
    let value = serde_json::to_value(output).unwrap_or_default();
    let text = |pointer: &str| match value.pointer(pointer) {
        Some(serde_json::Value::String(text)) => Some(text.clone()),
        Some(serde_json::Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let parts = [
        ("", "/language"),
        ("run by ", "/runtime/path"),
        ("version ", "/runtime/version"),
        ("isolation ", "/isolation/level"),
    ];
    let known = parts
        .into_iter()
        .filter_map(|(what, at)| Some(format!("{what}{}", text(at)?)));
    let time = value["duration_ms"].as_f64();
    let time = time.map(|it| format!("{it:.0} ms"));
    known.chain(time).collect::<Vec<_>>().join(", ")
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
