//! The cases as data: what `tests/attacks/attacks.json` says, and the part of its
//! `expect` sentences that has a grammar. What is prose there is asserted in `prose`.

use std::time::Duration;

use serde::Deserialize;

/// One case, as written in the file. Fields we do not know are an error, so a
/// correction cannot hide in a misspelt field.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub id: String,
    pub category: String,
    pub language: String,
    pub code: String,
    pub expect: String,
    /// Why this case differs from the one it was copied from.
    #[serde(default)]
    pub note: Option<String>,
}

/// How a run may end, in the words of the cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Exited,
    ExitedZero,
    Error,
    Timeout,
    Memory,
    Output,
    Rejected,
}

/// All cases, in the order of the file.
pub fn all() -> Vec<Case> {
    serde_json::from_str(include_str!("../../attacks/attacks.json"))
        .expect("attacks.json is readable")
}

impl Case {
    /// The stable part of the id: `RES-01` of `RES-01-bash-fork-bomb`.
    pub fn short(&self) -> &str {
        self.id.get(..6).unwrap_or(&self.id)
    }

    /// The outcomes the case allows; empty when it names none.
    pub fn outcomes(&self) -> Vec<Outcome> {
        let Some(clause) = self.clause("outcome:") else {
            return Vec::new();
        };
        clause
            .split('|')
            .flat_map(|part| part.split(" or "))
            .filter_map(outcome)
            .collect()
    }

    /// The longest time to the answer, for a run with the timeout `wall`.
    pub fn within(&self, wall: Duration) -> Option<Duration> {
        let clause = self.clause("within:")?;
        let word = clause.split(' ').next()?;
        let seconds = |text: &str| {
            text.trim_end_matches('s')
                .parse()
                .ok()
                .map(Duration::from_secs)
        };
        match word.strip_prefix("wall") {
            Some("") => Some(wall),
            Some(rest) => Some(wall + seconds(rest.trim_start_matches('+'))?),
            None => seconds(word),
        }
    }

    fn clause(&self, name: &str) -> Option<&str> {
        let start = self.expect.find(name)? + name.len();
        self.expect[start..].split(';').next()
    }
}

/// A compile step is part of the program here, so an error of the compiler is an
/// error of the run, and so is the end by a file-size limit.
fn outcome(text: &str) -> Option<Outcome> {
    const WORDS: [(&str, Outcome); 9] = [
        ("exited 0", Outcome::ExitedZero),
        ("exited", Outcome::Exited),
        ("error", Outcome::Error),
        ("timeout", Outcome::Timeout),
        ("oom", Outcome::Memory),
        ("output-limit", Outcome::Output),
        ("compile error", Outcome::Error),
        ("file-size limit", Outcome::Error),
        ("rejected", Outcome::Rejected),
    ];
    let text = text.trim();
    WORDS
        .iter()
        .find(|(word, _)| text.starts_with(word))
        .map(|(_, outcome)| *outcome)
}

#[test]
fn every_clause_with_a_grammar_is_understood() {
    for case in all() {
        let named = case.expect.contains("outcome:");
        assert_eq!(
            named,
            !case.outcomes().is_empty(),
            "{}: {}",
            case.id,
            case.expect
        );
        let timed = case.expect.contains("within:");
        assert_eq!(
            timed,
            case.within(Duration::from_secs(3)).is_some(),
            "{}: {}",
            case.id,
            case.expect
        );
    }
}
