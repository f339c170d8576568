//! The verdict on one answer: every clause of `expect` that has a grammar, and what
//! must hold after any case whatever it expects. Prose is judged in `prose`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::answer::Answer;
use super::canary::{self, Canaries};
use super::case::{Case, Outcome};
use super::pass::Pass;
use super::scope;
use super::witness;
use crate::support::left::is_of_others;

/// What a busy machine may add to the time to an answer, and to the cleaning up behind it. That a limit ended a program
/// is judged by the outcome; this only tells late from never.
pub const NOISE: Duration = Duration::from_secs(30);
/// The same for processes that were killed. Those that were not live longer than this.
const GONE: Duration = Duration::from_secs(5);

/// The state of the host before a pass, to compare with.
pub struct Before {
    mounts: BTreeSet<String>,
    temporary: BTreeSet<PathBuf>,
    home: BTreeSet<PathBuf>,
}

impl Before {
    pub fn of(pass: &Pass) -> Before {
        Before {
            mounts: witness::mounts("self"),
            temporary: witness::temporary(pass.uid),
            home: witness::files(&pass.home),
        }
    }

    /// What is on the host now that was not there before.
    fn left(&self, pass: &Pass) -> Vec<String> {
        let mounts = witness::mounts("self");
        // A container that runs beside this program has mounts here; where the suite runs in containers, none is left at its end.
        let mounts = mounts
            .difference(&self.mounts)
            .filter(|line| !is_of_others(line))
            .map(|line| format!("a mount is left: {line}"));
        let home = witness::files(&pass.home);
        // The cache of found interpreters is meant to stay, and so are the records of runs.
        let kept = [".cache", ".local/state/hotcell"].map(|it| pass.home.join(it));
        let home = home.difference(&self.home).filter(|path| {
            !kept
                .iter()
                .any(|it| path.starts_with(it) || it.starts_with(path))
        });
        let temporary = witness::temporary(pass.uid);
        let files = temporary.difference(&self.temporary).chain(home);
        mounts
            .chain(files.map(|path| format!("a file is left: {}", path.display())))
            .collect()
    }
}

/// Checks the answer to a case; each string names a clause that does not hold.
pub fn judge(case: &Case, wall: Duration, answer: &Answer) -> Vec<String> {
    let Some(result) = answer.json() else {
        return vec!["standard output is not exactly one JSON object".to_owned()];
    };
    let mut failed = Vec::new();
    let mut clause = |holds: bool, text: String| {
        if !holds {
            failed.push(text);
        }
    };

    let outcomes = outcomes(&result);
    let allowed = case.outcomes();
    let fits = outcomes.iter().any(|outcome| allowed.contains(outcome));
    // Where no outcome is named the program has to come to its end by itself: one that
    // is stopped before has not tried every wall.
    let own = [Outcome::Exited, Outcome::Error];
    let ended = outcomes.iter().any(|outcome| own.contains(outcome));
    clause(
        !outcomes.is_empty(),
        format!("no outcome: status {}", result["status"]),
    );
    clause(
        fits || allowed.is_empty(),
        format!("outcome: {outcomes:?} is none of {allowed:?}"),
    );
    clause(
        ended || !allowed.is_empty(),
        format!("outcome: {outcomes:?}, and not by itself"),
    );
    clause(
        expected_code(&result) == answer.code,
        format!("the exit code {:?} does not fit the result", answer.code),
    );
    if let Some(limit) = case.within(wall) {
        clause(
            answer.elapsed <= limit + NOISE,
            format!("within: {:?} took {:?}", limit, answer.elapsed),
        );
    }

    let stdout = result["stdout"].as_str().unwrap_or_default();
    let stderr = result["stderr"].as_str().unwrap_or_default();
    for line in stdout
        .lines()
        .chain(stderr.lines())
        .filter(|line| breach(case, line))
    {
        clause(false, format!("never:BREACH: {line}"));
    }
    // A wall that was never tried proves nothing.
    let stopped = fits && !ended;
    let ran = !stdout.is_empty() || stopped || scope::SILENT.contains(&case.short());
    clause(ran, "no sign that the program ran".to_owned());
    let whole = case.short() == "RES-05"
        || !case.expect.contains("never:BREACH")
        || !stderr.contains("Traceback");
    clause(whole, "the program ended before its last attack".to_owned());
    failed
}

/// Checks a run without `--json`, of which only the exit code and the time are ours.
pub fn streamed(case: &Case, wall: Duration, answer: &Answer) -> Vec<String> {
    let limit = case.within(wall).unwrap_or(wall) + NOISE;
    let mut failed = Vec::new();
    if answer.code.is_none_or(|code| [2, 101, 125].contains(&code)) {
        failed.push("no answer".to_owned());
    }
    if answer.elapsed > limit {
        failed.push(format!("within: {limit:?}"));
    }
    failed
}

/// Checks what must hold after every answer: nothing of the host in it, nothing raw
/// on the stream, nothing left behind.
pub fn aftermath(
    answer: &Answer,
    pass: &Pass,
    before: &Before,
    canaries: &Canaries,
) -> Vec<String> {
    let mut failed = leaks(answer, &canaries.secret);
    failed.extend(canaries.disturbed());
    failed.extend(answer.traces.files());
    failed.extend(witness::settled(GONE, || answer.traces.survivors()));
    failed.extend(witness::settled(NOISE, || answer.traces.groups()));
    failed.extend(witness::settled(NOISE, || before.left(pass)));
    failed
}

/// What an answer may never carry, whoever asked.
pub fn leaks(answer: &Answer, secret: &str) -> Vec<String> {
    let mut failed = Vec::new();
    for (name, bytes) in [
        ("standard output", &answer.stdout),
        ("standard error", &answer.stderr),
    ] {
        let text = String::from_utf8_lossy(bytes);
        for word in [secret, canary::ARGUMENT, "panicked at", "stack backtrace"] {
            if text.contains(word) {
                failed.push(format!("{name} contains `{word}`"));
            }
        }
        if bytes
            .iter()
            .any(|byte| *byte < b' ' && !b"\n\t".contains(byte))
        {
            failed.push(format!("{name} has a raw control character"));
        }
    }
    failed
}

/// All the words for how this run ended.
fn outcomes(result: &Value) -> Vec<Outcome> {
    if result["error"]["kind"] == "output" {
        return vec![Outcome::Output];
    }
    match (result["status"].as_str(), result["exit_code"].as_i64()) {
        (Some("ok"), Some(0)) => vec![Outcome::Exited, Outcome::ExitedZero],
        (Some("failed"), Some(1..)) => vec![Outcome::Exited, Outcome::Error],
        (Some("failed" | "killed"), None) if result["signal"].is_string() => vec![Outcome::Error],
        (Some("timeout"), _) => vec![Outcome::Timeout],
        (Some("memory"), _) => vec![Outcome::Memory],
        (Some("rejected"), _) => vec![Outcome::Rejected],
        _ => Vec::new(),
    }
}

/// The exit code that the documentation promises for this result.
pub fn expected_code(result: &Value) -> Option<i32> {
    match outcomes(result).first()? {
        Outcome::Exited | Outcome::ExitedZero => result["exit_code"].as_i64()?.try_into().ok(),
        Outcome::Timeout => Some(124),
        Outcome::Memory => Some(122),
        Outcome::Output => Some(123),
        Outcome::Rejected => Some(2),
        Outcome::Error => Some(128 + signal(result["signal"].as_str()?)?),
    }
}

/// The number of a signal that can end a program of the suite.
fn signal(name: &str) -> Option<i32> {
    match name {
        "SIGABRT" => Some(libc::SIGABRT),
        "SIGBUS" => Some(libc::SIGBUS),
        "SIGKILL" => Some(libc::SIGKILL),
        "SIGSEGV" => Some(libc::SIGSEGV),
        "SIGSYS" => Some(libc::SIGSYS),
        "SIGTRAP" => Some(libc::SIGTRAP),
        "SIGXCPU" => Some(libc::SIGXCPU),
        "SIGXFSZ" => Some(libc::SIGXFSZ),
        _ => None,
    }
}

/// FSE-02 alone may write to `/`, if that is a private tmpfs that is thrown away.
fn breach(case: &Case, line: &str) -> bool {
    line.starts_with("BREACH") && !(case.short() == "FSE-02" && line == "BREACH /")
}

#[cfg(test)]
mod tests;
