//! A result as the world sees it: what `--json` prints and MCP returns.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::cell::{CellError, Isolation};
use crate::compile::Compiled;
use crate::egress;
use crate::engine::{Rejected, RunResult, StartError};
use crate::error_kind::ErrorKind;
use crate::hint::{Hint, Surface};
use crate::language::{By, Cause, Diagnosis, LanguageError, Problem};
use crate::packages::Refused;
use crate::plan::{RunPlan, bytes};
use crate::run::Outcome;

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
    /// There once a surface has put it into words: see [`Unworded`].
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
    fn new(kind: ErrorKind, message: String) -> Self {
        Self {
            kind,
            message,
            hint: None,
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

/// An output whose hint nobody has put into words yet: only a surface knows by which flag or
/// parameter its reader can follow it.
#[derive(Debug)]
pub struct Unworded {
    output: RunOutput,
    hint: Option<Hint>,
}

impl Unworded {
    pub fn stdout(&self) -> &str {
        &self.output.stdout
    }

    pub fn stderr(&self) -> &str {
        &self.output.stderr
    }

    pub fn words(self, surface: Surface) -> RunOutput {
        let mut output = self.output;
        if let Some(error) = &mut output.error {
            error.hint = self.hint.map(|hint| hint.words(surface));
        }
        output
    }

    /// The same with the version of its runtime.
    pub fn with_version(mut self, version: Option<String>) -> Self {
        if let Some(runtime) = &mut self.output.runtime {
            runtime.version = version;
        }
        self
    }
}

impl RunOutput {
    /// What the network refused, and how a surface lets it be granted: one line for each.
    pub fn refusals(&self, surface: Surface) -> Vec<String> {
        let denied = self.network.iter().flat_map(|network| &network.denied);
        let line = |denied: &egress::Denied| {
            let why = format!("`{}` was refused: {}", denied.host, denied.reason.words());
            match &denied.grant {
                Some(host) => {
                    let grant = Hint::GrantRefused(host.clone());
                    format!("network: {why}. {}", grant.words(surface))
                }
                None => format!("network: {why}"),
            }
        };
        denied.map(line).collect()
    }

    pub fn of_result(plan: &RunPlan, result: RunResult) -> Unworded {
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
        let output = Self {
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
        };
        let hint = verdict.hint;
        Unworded { output, hint }
    }

    /// A request that was refused: nothing ran.
    pub fn of_rejection(kind: ErrorKind, message: String, hint: Option<Hint>) -> Unworded {
        // A message of whole sentences gets one more.
        let message = match message.ends_with('.') {
            true => format!("{message} Nothing was executed."),
            false => format!("{message}; nothing was executed"),
        };
        let output = Self {
            error: Some(ErrorOutput::new(kind, message)),
            ..Self::empty(Status::Rejected, None)
        };
        Unworded { output, hint }
    }

    /// The same, with all that is known about the reason.
    pub fn of_rejected(rejected: &Rejected, message: String) -> Unworded {
        let mut unworded = Self::of_rejection(rejected.kind(), message, rejected.hint());
        match (rejected, &mut unworded.output.error) {
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
        unworded
    }

    /// A cell that could not be made: nothing ran.
    pub fn of_start_error(plan: &RunPlan, error: &StartError) -> Unworded {
        let (status, kind) = match error {
            StartError::Cell(CellError::Wall { .. }) => (Status::Rejected, ErrorKind::Denied),
            StartError::Packages(error) => (Status::Failed, error.kind()),
            StartError::Cell(error) if error.is_lost() => (Status::Lost, ErrorKind::Sandbox),
            _ => (Status::Rejected, ErrorKind::Sandbox),
        };
        let message = format!("{error}; nothing was executed");
        let hint = error.hint();
        let mut told = ErrorOutput::new(kind, message);
        if let StartError::Packages(error) = error {
            told.module = error.module().map(str::to_owned);
            told.candidates = error.candidates();
        }
        let output = Self {
            error: Some(told),
            ..Self::empty(status, Some(plan))
        };
        Unworded { output, hint }
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
    /// Without its hint, which is below.
    pub error: Option<ErrorOutput>,
    pub hint: Option<Hint>,
    /// Whether the program's own standard error says as much.
    pub is_said: bool,
}

/// Who ran, and within which limits: the program or its compiler.
struct Ran {
    who: &'static str,
    timeout: Duration,
    memory: u64,
    tasks: u32,
}

impl Verdict {
    pub fn of(plan: &RunPlan, result: &RunResult) -> Self {
        let verdict = match (&result.compiled, &plan.build) {
            (Some(compiled), Some(build)) if compiled.failed => {
                let compiler = Ran {
                    who: "the compiler",
                    timeout: build.timeout,
                    memory: build.limits.memory,
                    tasks: build.limits.tasks,
                };
                Self::of_outcome(plan, &compiler, result).of_compiler(compiled, &result.refused)
            }
            _ => {
                let program = Ran {
                    who: "the program",
                    timeout: plan.launch.timeout,
                    memory: plan.launch.limits.memory,
                    tasks: plan.launch.limits.tasks,
                };
                Self::of_outcome(plan, &program, result)
            }
        };
        verdict.explained(&result.refused)
    }

    fn of_outcome(plan: &RunPlan, ran: &Ran, result: &RunResult) -> Self {
        let who = ran.who;
        match result.outcome {
            Outcome::Exited { code: 0, .. } => Self {
                status: Status::Ok,
                shell_code: 0,
                exit_code: Some(0),
                signal: None,
                error: None,
                hint: None,
                is_said: false,
            },
            Outcome::Exited {
                code,
                at_process_limit: true,
            } => {
                let message = format!(
                    "{who} failed with exit code {code} after it had reached its limit of {} processes",
                    ran.tasks
                );
                let error = ErrorOutput::new(ErrorKind::Processes, message);
                Self::failed(Status::Failed, code as u8, error)
                    .with_hint(Hint::RaiseProcesses)
                    .with_code(code)
            }
            Outcome::Exited { code, .. } => {
                let exited = format!("{who} failed with exit code {code}");
                Self::diagnosed(plan, exited, code as u8, &result.stderr.tail()).with_code(code)
            }
            Outcome::Signaled { signal } => {
                let name = signal_name(signal);
                let message = format!("{who} was ended by {name}");
                let error = ErrorOutput::new(ErrorKind::Signal, message);
                Self {
                    signal: Some(name),
                    ..Self::failed(Status::Killed, 128 + signal as u8, error)
                }
            }
            Outcome::TimedOut => {
                let seconds = ran.timeout.as_secs_f64();
                let message = format!("{who} was ended at its time limit of {seconds} s");
                let error = ErrorOutput::new(ErrorKind::Timeout, message);
                Self::failed(Status::Timeout, 124, error).with_hint(Hint::RaiseTimeout)
            }
            Outcome::OutOfMemory => {
                let limit = bytes(ran.memory);
                let message = format!("{who} was ended at its memory limit of {limit}");
                let error = ErrorOutput::new(ErrorKind::Memory, message);
                Self::failed(Status::Memory, 122, error).with_hint(Hint::RaiseMemory)
            }
            Outcome::TooMuchOutput => {
                let limit = bytes(plan.launch.output_limit);
                let message = format!("{who} was ended because it printed more than {limit}");
                let error = ErrorOutput::new(ErrorKind::Output, message);
                Self::failed(Status::Killed, 123, error).with_hint(Hint::RaiseOutput)
            }
            Outcome::Cancelled => {
                let message = "the run was cancelled".to_owned();
                let error = ErrorOutput::new(ErrorKind::Cancelled, message);
                Self::failed(Status::Cancelled, 130, error)
            }
            Outcome::Lost => {
                let message =
                    format!("{who}'s sandbox vanished; what it did until then is unknown");
                let error = ErrorOutput::new(ErrorKind::Lost, message);
                Self::failed(Status::Lost, 125, error).with_hint("Run it again.".into())
            }
        }
    }

    fn failed(status: Status, shell_code: u8, error: ErrorOutput) -> Self {
        Self {
            status,
            shell_code,
            exit_code: None,
            signal: None,
            error: Some(error),
            hint: None,
            is_said: false,
        }
    }

    fn with_code(self, code: i32) -> Self {
        Self {
            exit_code: Some(code),
            ..self
        }
    }

    fn with_hint(self, hint: Hint) -> Self {
        Self {
            hint: Some(hint),
            ..self
        }
    }

    /// Why a program failed by itself, as far as its runtime said so.
    fn diagnosed(plan: &RunPlan, exited: String, shell_code: u8, stderr: &[u8]) -> Self {
        let Diagnosis { cause, file, line } = plan.failure.diagnose(stderr);
        let mut module = None;
        let mut is_said = true;
        let (kind, message, hint) = match cause {
            Cause::Unknown => {
                match egress::missing_network(stderr).filter(|_| plan.egress.is_none()) {
                    Some(host) => {
                        is_said = false;
                        let message = format!("{exited}: it has no network");
                        (ErrorKind::Denied, message, Some(Hint::GrantHost(host)))
                    }
                    None => (ErrorKind::Exception, exited, None),
                }
            }
            Cause::NoInput => {
                let message = format!("{exited}: it read more input than there was");
                (ErrorKind::Exception, message, Some(Hint::GiveInput))
            }
            Cause::Syntax { words } => {
                let message = format!("the program could not be read: {words}");
                (ErrorKind::Syntax, message, None)
            }
            Cause::MissingModule { module: name, hint } => {
                is_said = hint.is_none();
                let message = format!("the program needs `{name}`, which is not there");
                let hint = hint.map_or(Hint::NamePackage, Hint::OfDefinition);
                module = Some(name);
                (ErrorKind::MissingModule, message, Some(hint))
            }
        };
        let error = ErrorOutput {
            // A line without a file is one of the program itself.
            file: file.or_else(|| line.map(|_| plan.source.to_string())),
            line,
            module,
            ..ErrorOutput::new(kind, message)
        };
        Self {
            hint,
            is_said,
            ..Self::failed(Status::Failed, shell_code, error)
        }
    }

    /// Why there is no program to run.
    fn of_compiler(self, compiled: &Compiled, refused: &[Refused]) -> Self {
        let Some(mut error) = self.error else {
            return self;
        };
        let mut hint = self.hint;
        match error.kind {
            // A compiler that exits with a code does so for what is wrong with its sources.
            ErrorKind::Exception | ErrorKind::Syntax | ErrorKind::MissingModule => {
                let first = compiled.problems.first();
                let message = match first {
                    Some(problem) => {
                        format!("the program could not be compiled: {}", problem.message)
                    }
                    None => "the program could not be compiled".to_owned(),
                };
                error = ErrorOutput {
                    file: first.map(|problem| problem.file.clone()),
                    line: first.map(|problem| problem.line),
                    column: first.and_then(|problem| problem.column),
                    diagnostics: compiled.problems.clone(),
                    ..ErrorOutput::new(ErrorKind::Syntax, message)
                };
                hint = None;
            }
            ErrorKind::Timeout => {
                hint = Some(
                    "The compiler's own limit is `[compile] timeout` of the language; give it less to do, \
                     or describe the language anew in hotcell's configuration."
                        .into(),
                );
            }
            ErrorKind::Memory => {
                hint =
                    Some("The compiler's own limit is `[compile] memory` of the language.".into());
            }
            _ => {}
        }
        // A compiler has no field for what it misses, but it says its name.
        let missed = refused.iter().find(|it| error.message.contains(&it.module));
        error.module = missed.map(|it| it.module.clone());
        Self {
            is_said: error.kind == ErrorKind::Syntax,
            error: Some(error),
            hint,
            ..self
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
            error.candidates = refused.candidates.clone();
            self.is_said &= error.kind != ErrorKind::MissingModule;
            self.hint = Some(Hint::NameRefusedPackage {
                candidates: refused.candidates.clone(),
                why: refused.why.clone(),
            });
        }
        self
    }
}

fn milliseconds(duration: Duration) -> f64 {
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
