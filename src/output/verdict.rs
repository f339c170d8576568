//! How a program ended, in words and numbers.
//!
//! What the supervisor saw decides; what the program printed only says more about it, in `diagnosis`.

use std::time::Duration;

use super::{ErrorOutput, Status};
use crate::engine::RunResult;
use crate::error_kind::ErrorKind;
use crate::hint::{Hint, Limit};
use crate::plan::RunPlan;
use crate::request::bytes;
use crate::run::Outcome;

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
        let verdict = verdict.explained(&result.refused);
        let verdict = verdict.denied(result.network.as_ref());
        let verdict = verdict.about_installers(plan, &result.stderr.tail());
        verdict.about_input(plan, result.had_input)
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
                let room = (ran.tasks < plan.most.tasks).then(|| plan.most.tasks.to_string());
                Self::failed(Status::Failed, code as u8, error)
                    .with_hint(Hint::Raise(Limit::Processes, room))
                    .with_code(code)
            }
            Outcome::Exited { code, .. } => {
                let exited = format!("{who} failed with exit code {code}");
                Self::diagnosed(plan, exited, code as u8, &result.stderr.tail()).with_code(code)
            }
            Outcome::Signaled { signal } => {
                let name = signal_name(signal);
                let message = format!("{who} was ended by {name}");
                let (kind, message, hint) =
                    match plan.failure().ran_out_of_memory(&result.stderr.tail()) {
                        true => Self::says_no_memory(plan, &message),
                        false => (ErrorKind::Signal, message, None),
                    };
                let error = ErrorOutput::new(kind, message);
                Self {
                    signal: Some(name),
                    hint,
                    ..Self::failed(Status::Killed, 128 + signal as u8, error)
                }
            }
            Outcome::TimedOut => {
                let seconds = ran.timeout.as_secs_f64();
                let message = format!("{who} was ended at its time limit of {seconds} s");
                let error = ErrorOutput::new(ErrorKind::Timeout, message);
                let most = plan.most.timeout;
                let room = (ran.timeout < most).then(|| format!("{} s", most.as_secs_f64()));
                Self::failed(Status::Timeout, 124, error)
                    .with_hint(Hint::Raise(Limit::Timeout, room))
            }
            Outcome::OutOfMemory => {
                let limit = bytes(ran.memory);
                let message = format!("{who} was ended at its memory limit of {limit}");
                let error = ErrorOutput::new(ErrorKind::Memory, message);
                let room = (ran.memory < plan.most.memory).then(|| bytes(plan.most.memory));
                Self::failed(Status::Memory, 122, error).with_hint(Hint::Raise(Limit::Memory, room))
            }
            Outcome::HostOutOfMemory => {
                let message = format!(
                    "{who} was ended because its host ran out of memory, not at its own limit"
                );
                let error = ErrorOutput::new(ErrorKind::Lost, message);
                let hint = "Run it again when the host has more memory, or fewer runs at a time.";
                Self::failed(Status::Lost, 125, error).with_hint(hint.into())
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

    pub(super) fn failed(status: Status, shell_code: u8, error: ErrorOutput) -> Self {
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
