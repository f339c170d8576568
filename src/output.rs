//! A result as the world sees it: what `--json` prints and MCP returns.

use std::collections::BTreeMap;

use jail::JailError;
use serde::Serialize;

use crate::cell::Isolation;
use crate::plan::{RunPlan, bytes};
use crate::run::{Outcome, RunResult, StartError};

#[derive(Debug, Serialize)]
pub struct RunOutput {
    pub status: &'static str,
    pub exit_code: Option<i32>,
    pub signal: Option<String>,
    pub stdout: String,
    pub stderr: String,
    /// Which streams were cut, and how many bytes they had in all.
    pub truncated: BTreeMap<&'static str, u64>,
    pub error: Option<ErrorOutput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeOutput>,
    pub duration_ms: f64,
    pub usage: UsageOutput,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
}

#[derive(Debug, Serialize)]
pub struct ErrorOutput {
    pub kind: &'static str,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct RuntimeOutput {
    pub name: String,
    pub path: String,
}

#[derive(Debug, Default, Serialize)]
pub struct UsageOutput {
    pub cpu_ms: Option<f64>,
    pub memory_peak_bytes: Option<u64>,
}

impl RunOutput {
    pub fn of_result(plan: &RunPlan, result: RunResult) -> Self {
        let verdict = Verdict::of(plan, result.outcome);
        let mut truncated = BTreeMap::new();
        for (name, stream) in [("stdout", &result.stdout), ("stderr", &result.stderr)] {
            if stream.is_truncated() {
                truncated.insert(name, stream.total);
            }
        }
        Self {
            exit_code: verdict.exit_code,
            signal: verdict.signal,
            stdout: result.stdout.to_text(),
            stderr: result.stderr.to_text(),
            truncated,
            error: verdict.error,
            duration_ms: milliseconds(result.duration),
            usage: UsageOutput {
                cpu_ms: result.spent.cpu.map(milliseconds),
                memory_peak_bytes: result.spent.memory_peak,
            },
            isolation: Some(result.isolation),
            ..Self::empty(verdict.status, Some(plan))
        }
    }

    /// A request that was refused: nothing ran.
    pub fn of_rejection(kind: &'static str, message: String, hint: Option<String>) -> Self {
        let error = ErrorOutput {
            kind,
            message: format!("{message}; nothing was executed"),
            hint,
        };
        Self {
            error: Some(error),
            ..Self::empty("rejected", None)
        }
    }

    /// A cell that could not be made: nothing ran.
    pub fn of_start_error(plan: &RunPlan, error: &StartError) -> Self {
        let (status, kind) = match error {
            StartError::Wall { .. } => ("rejected", "denied"),
            StartError::Lost | StartError::Slow | StartError::Jail(JailError::SpawnerGone) => {
                ("lost", "sandbox")
            }
            _ => ("rejected", "sandbox"),
        };
        let error = ErrorOutput {
            kind,
            message: format!("{error}; nothing was executed"),
            hint: error.hint().map(str::to_owned),
        };
        Self {
            error: Some(error),
            ..Self::empty(status, Some(plan))
        }
    }

    fn empty(status: &'static str, plan: Option<&RunPlan>) -> Self {
        Self {
            status,
            exit_code: None,
            signal: None,
            stdout: String::new(),
            stderr: String::new(),
            truncated: BTreeMap::new(),
            error: None,
            language: plan.map(|plan| plan.language.to_string()),
            runtime: plan.map(|plan| RuntimeOutput {
                name: plan.runtime.command.clone(),
                path: plan.runtime.path.display().to_string(),
            }),
            duration_ms: 0.0,
            usage: UsageOutput::default(),
            notes: plan.map(|plan| plan.notes.clone()).unwrap_or_default(),
            isolation: None,
        }
    }
}

/// An outcome in words and numbers.
pub struct Verdict {
    pub status: &'static str,
    /// What `hotcell run` exits with.
    pub shell_code: u8,
    pub exit_code: Option<i32>,
    pub signal: Option<String>,
    pub error: Option<ErrorOutput>,
}

impl Verdict {
    pub fn of(plan: &RunPlan, outcome: Outcome) -> Self {
        let failed = |status, shell_code: u8, kind, message: String, hint: Option<&str>| Self {
            status,
            shell_code,
            exit_code: None,
            signal: None,
            error: Some(ErrorOutput {
                kind,
                message,
                hint: hint.map(str::to_owned),
            }),
        };
        match outcome {
            Outcome::Exited { code: 0, .. } => Self {
                status: "ok",
                shell_code: 0,
                exit_code: Some(0),
                signal: None,
                error: None,
            },
            Outcome::Exited {
                code,
                at_process_limit,
            } => {
                let (kind, message, hint) = if at_process_limit {
                    let tasks = plan.limits.tasks;
                    (
                        "processes",
                        format!(
                            "the program failed with exit code {code} after it had reached its limit of {tasks} processes"
                        ),
                        Some(
                            "Raise the limit with `--pids`, or start fewer processes and threads.",
                        ),
                    )
                } else {
                    (
                        "exception",
                        format!("the program failed with exit code {code}"),
                        None,
                    )
                };
                Self {
                    exit_code: Some(code),
                    ..failed("failed", code as u8, kind, message, hint)
                }
            }
            Outcome::Signaled { signal } => {
                let name = signal_name(signal);
                let message = format!("the program was ended by {name}");
                Self {
                    signal: Some(name),
                    ..failed("killed", 128 + signal as u8, "signal", message, None)
                }
            }
            Outcome::TimedOut => failed(
                "timeout",
                124,
                "timeout",
                format!(
                    "the program was ended at its time limit of {} s",
                    plan.timeout.as_secs_f64()
                ),
                Some("Raise the limit with `--timeout`."),
            ),
            Outcome::OutOfMemory => failed(
                "memory",
                122,
                "memory",
                format!(
                    "the program was ended at its memory limit of {}",
                    bytes(plan.limits.memory)
                ),
                Some("Raise the limit with `--memory`."),
            ),
            Outcome::TooMuchOutput => failed(
                "killed",
                123,
                "output",
                format!(
                    "the program was ended because it printed more than {}",
                    bytes(plan.output_limit)
                ),
                Some("Raise the limit with `--output-limit`, or print less."),
            ),
            Outcome::Cancelled => failed(
                "cancelled",
                130,
                "cancelled",
                "the run was cancelled".to_owned(),
                None,
            ),
            Outcome::Lost => failed(
                "lost",
                125,
                "lost",
                "the program's cell vanished; what it did until then is unknown".to_owned(),
                Some("Run it again."),
            ),
        }
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
