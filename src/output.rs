//! A result as the world sees it: what `--json` prints and MCP returns.

use std::collections::BTreeMap;
use std::fmt;

use jail::JailError;
use serde::Serialize;

use crate::cell::Isolation;
use crate::egress;
use crate::engine::Rejected;
use crate::error_kind::ErrorKind;
use crate::language::{By, Cause, Diagnosis, LanguageError, Problem};
use crate::packages::Refused;
use crate::plan::{RunPlan, bytes};
use crate::run::{Compiled, Outcome, RunResult, StartError};

/// What to do about a missing module of which nothing more is known.
pub const USUAL_HINT: &str = "Name its package in `packages`, or pass the module as a file.";

/// How a run ended, in one stable word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Ok,
    Failed,
    Killed,
    Timeout,
    Memory,
    Cancelled,
    Lost,
    /// Nothing was executed.
    Rejected,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[derive(Debug, Serialize)]
pub struct RunOutput {
    pub status: Status,
    pub exit_code: Option<i32>,
    pub signal: Option<String>,
    pub stdout: String,
    pub stderr: String,
    /// What it printed, if that is a picture and not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageOutput>,
    /// Which streams were cut, and how many bytes they had in all.
    pub truncated: BTreeMap<&'static str, u64>,
    pub error: Option<ErrorOutput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// How the language was told, if it was not named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detected: Option<DetectedOutput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeOutput>,
    /// What became of the compile step, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compile: Option<CompileOutput>,
    /// The packages that it had, if it had any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packages: Option<PackagesOutput>,
    pub duration_ms: f64,
    pub usage: UsageOutput,
    /// What it asked of its network, if it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<egress::Report>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
}

#[derive(Debug, Serialize)]
pub struct ErrorOutput {
    pub kind: ErrorKind,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Where in the workspace, if the runtime said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// All that a compiler complained about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Problem>,
    /// What could not be imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The languages that the program may be in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
    /// The programs that were searched, and where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub searched: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The command that would install what is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// The program of another system that it would need.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires: Option<String>,
}

impl ErrorOutput {
    fn new(kind: ErrorKind, message: String, hint: Option<String>) -> Self {
        Self {
            kind,
            message,
            hint,
            file: None,
            line: None,
            column: None,
            diagnostics: Vec::new(),
            module: None,
            candidates: Vec::new(),
            searched: Vec::new(),
            path: None,
            install: None,
            requires: None,
        }
    }
}

#[derive(Debug, Serialize)]
pub struct ImageOutput {
    pub mime_type: &'static str,
    pub bytes: usize,
    /// For surfaces that can show it; as text it would only be long.
    #[serde(skip)]
    pub data: Vec<u8>,
}

#[derive(Debug, Serialize)]
pub struct RuntimeOutput {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub path: String,
}

#[derive(Debug, Serialize)]
pub struct DetectedOutput {
    pub by: By,
    /// From 0 to 1.
    pub certainty: f64,
}

#[derive(Debug, Serialize)]
pub struct CompileOutput {
    pub duration_ms: f64,
    /// It was built before, and only looked up.
    pub cached: bool,
}

#[derive(Debug, Serialize)]
pub struct PackagesOutput {
    /// `name==version`.
    pub installed: Vec<String>,
    /// To have exactly these again: pass it as `packages`.
    pub lock: String,
    /// They were there already.
    pub cached: bool,
    /// How long it took to install them, if they were not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
}

#[derive(Debug, Default, Serialize)]
pub struct UsageOutput {
    pub cpu_ms: Option<f64>,
    pub memory_peak_bytes: Option<u64>,
}

impl RunOutput {
    /// What the network refused, and how `grant` says it is granted: one line for each.
    pub fn refusals(&self, grant: impl Fn(&str) -> String) -> Vec<String> {
        let denied = self.network.iter().flat_map(|network| &network.denied);
        let line = |denied: &egress::Denied| {
            let why = format!("`{}` was refused: {}", denied.host, denied.reason.words());
            match &denied.grant {
                Some(host) => format!("network: {why}. {}", grant(host)),
                None => format!("network: {why}"),
            }
        };
        denied.map(line).collect()
    }

    pub fn of_result(plan: &RunPlan, result: RunResult) -> Self {
        let verdict = Verdict::of(plan, &result);
        let mut truncated = BTreeMap::new();
        for (name, stream) in [("stdout", &result.stdout), ("stderr", &result.stderr)] {
            if stream.is_truncated() {
                truncated.insert(name, stream.total);
            }
        }
        let image = result
            .stdout
            .picture()
            .map(|(mime_type, data)| ImageOutput {
                mime_type,
                bytes: data.len(),
                data,
            });
        let stdout = match image {
            Some(_) => String::new(),
            None => result.stdout.to_text(),
        };
        Self {
            exit_code: verdict.exit_code,
            signal: verdict.signal,
            stdout,
            image,
            stderr: result.stderr.to_text(),
            truncated,
            error: verdict.error,
            compile: result.compiled.as_ref().map(|compiled| CompileOutput {
                duration_ms: milliseconds(compiled.duration),
                cached: compiled.cached,
            }),
            packages: result.packages.as_ref().map(|packages| PackagesOutput {
                installed: packages.set.installed.clone(),
                lock: packages.set.lock.clone(),
                cached: packages.took.is_none(),
                duration_ms: packages.took.map(milliseconds),
            }),
            notes: plan
                .notes
                .iter()
                .cloned()
                .chain(result_notes(&result))
                .collect(),
            duration_ms: milliseconds(result.duration),
            usage: UsageOutput {
                cpu_ms: result.spent.cpu.map(milliseconds),
                memory_peak_bytes: result.spent.memory_peak,
            },
            network: result.network,
            isolation: Some(result.isolation),
            ..Self::empty(verdict.status, Some(plan))
        }
    }

    /// A request that was refused: nothing ran.
    pub fn of_rejection(kind: ErrorKind, message: String, hint: Option<String>) -> Self {
        // A message of whole sentences gets one more.
        let message = match message.ends_with('.') {
            true => format!("{message} Nothing was executed."),
            false => format!("{message}; nothing was executed"),
        };
        let error = ErrorOutput::new(kind, message, hint);
        Self {
            error: Some(error),
            ..Self::empty(Status::Rejected, None)
        }
    }

    /// The same, with all that is known about the reason.
    pub fn of_rejected(rejected: &Rejected, message: String) -> Self {
        let mut output = Self::of_rejection(rejected.kind(), message, rejected.hint());
        match (rejected, &mut output.error) {
            (Rejected::Runtime(missing), Some(error)) => {
                error.searched = missing.searched.clone();
                error.path = Some(missing.path.to_string());
                error.install = missing.install.as_deref().map(str::to_owned);
            }
            (Rejected::Language(LanguageError::Undetected { candidates, .. }), Some(error)) => {
                error.candidates = candidates.iter().map(ToString::to_string).collect();
            }
            (Rejected::Platform(platform), Some(error)) => {
                error.requires = Some(platform.requires.clone());
            }
            _ => {}
        }
        output
    }

    /// A cell that could not be made: nothing ran.
    pub fn of_start_error(plan: &RunPlan, error: &StartError) -> Self {
        let (status, kind) = match error {
            StartError::Wall { .. } => (Status::Rejected, ErrorKind::Denied),
            StartError::Packages(error) => (Status::Failed, error.kind()),
            StartError::Lost | StartError::Slow | StartError::Jail(JailError::SpawnerGone) => {
                (Status::Lost, ErrorKind::Sandbox)
            }
            _ => (Status::Rejected, ErrorKind::Sandbox),
        };
        let message = format!("{error}; nothing was executed");
        let mut output = ErrorOutput::new(kind, message, error.hint().map(Into::into));
        if let StartError::Packages(error) = error {
            output.module = error.module().map(str::to_owned);
            output.candidates = error.candidates();
        }
        Self {
            error: Some(output),
            ..Self::empty(status, Some(plan))
        }
    }

    /// The same with the version of its runtime.
    pub fn with_version(mut self, version: Option<String>) -> Self {
        if let Some(runtime) = &mut self.runtime {
            runtime.version = version;
        }
        self
    }

    fn empty(status: Status, plan: Option<&RunPlan>) -> Self {
        Self {
            status,
            exit_code: None,
            signal: None,
            stdout: String::new(),
            stderr: String::new(),
            image: None,
            truncated: BTreeMap::new(),
            error: None,
            language: plan.map(|plan| plan.language.to_string()),
            detected: plan.and_then(|plan| match plan.chosen {
                (By::Request, _) => None,
                (by, certainty) => Some(DetectedOutput {
                    by,
                    certainty: (certainty * 100.0).floor() / 100.0,
                }),
            }),
            runtime: plan.map(|plan| RuntimeOutput {
                name: plan.runtime.command.clone(),
                version: None,
                path: plan.runtime.path.display().to_string(),
            }),
            compile: None,
            packages: None,
            duration_ms: 0.0,
            usage: UsageOutput::default(),
            network: None,
            notes: plan.map(|plan| plan.notes.clone()).unwrap_or_default(),
            isolation: None,
        }
    }
}

/// What was done for a program that its reader should know.
fn result_notes(result: &RunResult) -> Vec<String> {
    let installed = result.packages.iter().filter_map(|packages| {
        let names = packages.set.installed.iter();
        let names: Vec<String> = names.map(|name| name.replacen("==", " ", 1)).collect();
        let names = match names.len() {
            0..=8 => names.join(", "),
            more => format!("{} and {} more", names[..7].join(", "), more - 7),
        };
        let took = packages.took?.as_secs_f64();
        Some(format!("installed {names} in {took:.1} s"))
    });
    installed.collect()
}

/// An outcome in words and numbers.
pub struct Verdict {
    pub status: Status,
    /// What `hotcell run` exits with.
    pub shell_code: u8,
    pub exit_code: Option<i32>,
    pub signal: Option<String>,
    pub error: Option<ErrorOutput>,
}

impl Verdict {
    pub fn of(plan: &RunPlan, result: &RunResult) -> Self {
        match (&result.compiled, &plan.build) {
            (Some(compiled), Some(build)) if compiled.failed => {
                // The compiler's end is told as a program's would be, in its own words and limits.
                let compiler = RunPlan {
                    limits: build.limits.clone(),
                    timeout: build.timeout,
                    ..plan.clone()
                };
                let verdict = Self::of_program(&compiler, result);
                let mut error = verdict.error.map(|error| of_compiler(error, compiled));
                if let Some(error) = &mut error {
                    // A compiler has no field for what it misses, but it says its name.
                    let mut refused = result.refused.iter();
                    let missed = refused.find(|it| error.message.contains(&it.module));
                    error.module = missed.map(|it| it.module.clone());
                }
                Self { error, ..verdict }.explained(&result.refused)
            }
            _ => Self::of_program(plan, result).explained(&result.refused),
        }
    }

    /// A missing module with the reason why nothing was installed for it.
    fn explained(mut self, refused: &[Refused]) -> Self {
        if let Some(error) = &mut self.error
            && let Some(module) = error.module.as_deref()
            && let Some(refused) = refused
                .iter()
                .find(|it| module.split('.').next() == Some(it.module.as_str()))
        {
            error.hint = Some(match refused.candidates.as_slice() {
                [] => format!("Name its package in `packages`: {}.", refused.why),
                names => format!(
                    "Name its package in `packages`, perhaps {}: {}.",
                    names.join(" or "),
                    refused.why
                ),
            });
            error.candidates = refused.candidates.clone();
        }
        self
    }

    fn of_program(plan: &RunPlan, result: &RunResult) -> Self {
        let failed = |status, shell_code: u8, kind, message: String, hint: Option<&str>| Self {
            status,
            shell_code,
            exit_code: None,
            signal: None,
            error: Some(ErrorOutput::new(kind, message, hint.map(str::to_owned))),
        };
        match result.outcome {
            Outcome::Exited { code: 0, .. } => Self {
                status: Status::Ok,
                shell_code: 0,
                exit_code: Some(0),
                signal: None,
                error: None,
            },
            Outcome::Exited {
                code,
                at_process_limit,
            } => {
                let verdict = if at_process_limit {
                    let tasks = plan.limits.tasks;
                    let message = format!(
                        "the program failed with exit code {code} after it had reached its limit of {tasks} processes"
                    );
                    let hint =
                        "Raise the limit with `--pids`, or start fewer processes and threads.";
                    failed(
                        Status::Failed,
                        code as u8,
                        ErrorKind::Processes,
                        message,
                        Some(hint),
                    )
                } else {
                    let error = diagnosed(plan, code, &result.stderr.tail());
                    Self {
                        status: Status::Failed,
                        shell_code: code as u8,
                        exit_code: None,
                        signal: None,
                        error: Some(error),
                    }
                };
                Self {
                    exit_code: Some(code),
                    ..verdict
                }
            }
            Outcome::Signaled { signal } => {
                let name = signal_name(signal);
                let message = format!("the program was ended by {name}");
                Self {
                    signal: Some(name),
                    ..failed(
                        Status::Killed,
                        128 + signal as u8,
                        ErrorKind::Signal,
                        message,
                        None,
                    )
                }
            }
            Outcome::TimedOut => failed(
                Status::Timeout,
                124,
                ErrorKind::Timeout,
                format!(
                    "the program was ended at its time limit of {} s",
                    plan.timeout.as_secs_f64()
                ),
                Some("Raise the limit with `--timeout`."),
            ),
            Outcome::OutOfMemory => failed(
                Status::Memory,
                122,
                ErrorKind::Memory,
                format!(
                    "the program was ended at its memory limit of {}",
                    bytes(plan.limits.memory)
                ),
                Some("Raise the limit with `--memory`."),
            ),
            Outcome::TooMuchOutput => failed(
                Status::Killed,
                123,
                ErrorKind::Output,
                format!(
                    "the program was ended because it printed more than {}",
                    bytes(plan.output_limit)
                ),
                Some("Raise the limit with `--output-limit`, or print less."),
            ),
            Outcome::Cancelled => failed(
                Status::Cancelled,
                130,
                ErrorKind::Cancelled,
                "the run was cancelled".to_owned(),
                None,
            ),
            Outcome::Lost => failed(
                Status::Lost,
                125,
                ErrorKind::Lost,
                "the program's cell vanished; what it did until then is unknown".to_owned(),
                Some("Run it again."),
            ),
        }
    }
}

/// Why there is no program to run.
fn of_compiler(error: ErrorOutput, compiled: &Compiled) -> ErrorOutput {
    // A compiler that exits with a code does so for what is wrong with its sources.
    let rejects = matches!(
        error.kind,
        ErrorKind::Exception | ErrorKind::Syntax | ErrorKind::MissingModule
    );
    if !rejects {
        let hint = match error.kind {
            ErrorKind::Timeout => Some(
                "The compiler's own limit is `[compile] timeout` of the language; give it less to do, \
                 or describe the language anew in hotcell's configuration."
                    .to_owned(),
            ),
            ErrorKind::Memory => Some("The compiler's own limit is `[compile] memory` of the language.".to_owned()),
            _ => error.hint.clone(),
        };
        let message = error.message.replace("the program", "the compiler");
        return ErrorOutput {
            message,
            hint,
            ..error
        };
    }
    let first = compiled.problems.first();
    let message = match first {
        Some(problem) => format!("the program could not be compiled: {}", problem.message),
        None => "the program could not be compiled".to_owned(),
    };
    ErrorOutput {
        file: first.map(|problem| problem.file.clone()),
        line: first.map(|problem| problem.line),
        column: first.and_then(|problem| problem.column),
        diagnostics: compiled.problems.clone(),
        ..ErrorOutput::new(ErrorKind::Syntax, message, None)
    }
}

/// Why a program failed by itself, as far as its runtime said so.
fn diagnosed(plan: &RunPlan, code: i32, stderr: &[u8]) -> ErrorOutput {
    let Diagnosis { cause, file, line } = plan.failure.diagnose(stderr);
    let exited = format!("the program failed with exit code {code}");
    if cause == Cause::Unknown
        && plan.egress.is_none()
        && let Some(host) = egress::wanted(stderr)
    {
        let host = host.map_or_else(|| "the host".to_owned(), |host| format!("`{host}`"));
        let message = format!("{exited}: it has no network");
        let hint = format!("Grant {host} with `--network`.");
        return ErrorOutput {
            file: file.or_else(|| line.map(|_| plan.source.path.to_string())),
            line,
            ..ErrorOutput::new(ErrorKind::Denied, message, Some(hint))
        };
    }
    let (kind, message, hint, module) = match cause {
        Cause::Unknown => (ErrorKind::Exception, exited, None, None),
        Cause::NoInput => (
            ErrorKind::Exception,
            format!("{exited}: it read more input than there was"),
            Some("Give the program its input as `stdin`.".to_owned()),
            None,
        ),
        Cause::Syntax { words } => (
            ErrorKind::Syntax,
            format!("the program could not be read: {words}"),
            None,
            None,
        ),
        Cause::MissingModule { module, hint } => (
            ErrorKind::MissingModule,
            format!("the program needs `{module}`, which is not there"),
            Some(hint.unwrap_or_else(|| USUAL_HINT.to_owned())),
            Some(module),
        ),
    };
    ErrorOutput {
        // A place without a name is in the program itself.
        file: file.or_else(|| line.map(|_| plan.source.path.to_string())),
        line,
        module,
        ..ErrorOutput::new(kind, message, hint)
    }
}

fn milliseconds(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// The kernel's name of a signal.
fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 32] = [
        "", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV",
        "USR2", "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU",
        "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    match usize::try_from(signal).ok().and_then(|n| NAMES.get(n)) {
        Some(name) if !name.is_empty() => format!("SIG{name}"),
        _ => format!("signal {signal}"),
    }
}
