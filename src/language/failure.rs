//! What a runtime's own words on stderr say about why a program failed.
//!
//! A definition describes those words as data. They only refine an outcome that
//! the supervisor has seen: a program that ended well has not failed, whatever it
//! printed, and one that lies here deceives its own caller about nothing but the
//! kind of its failure: the status is the kernel's word.

mod pattern;

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Rule;
use pattern::Found;
pub use pattern::Pattern;

/// How the language tells on stderr why it failed; `languages/README.md` explains the fields.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Failure {
    /// Lines that mean "out of memory".
    memory: Vec<Pattern>,
    /// Lines that mean "this is not a program of the language".
    syntax: Vec<Pattern>,
    /// The same, in words that no running program causes: `running` is not looked for.
    parser: Vec<Pattern>,
    /// Lines that mean "something it imports is not there"; `{module}` is its name.
    missing: Vec<Pattern>,
    /// What to do about something missing, by how its name begins.
    elsewhere: BTreeMap<String, String>,
    /// Lines that mean "there was nothing more to read on stdin".
    input: Vec<Pattern>,
    /// What in a program means that it reads its standard input.
    reads: Option<Rule>,
    /// Lines that only a program causes that was running: with one of them
    /// nothing is a syntax error.
    running: Vec<Pattern>,
    /// How many of the last lines are searched for `syntax`, `parser`, `missing` and `input`.
    last_lines: Option<usize>,
    place: Place,
}

/// Lines that name the place of the failure, by `{line}` and perhaps `{path}`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Place {
    lines: Vec<Pattern>,
    /// The innermost call is named last, not first.
    last: bool,
}

/// What was learnt about a program that failed by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnosis {
    pub cause: Cause,
    /// Where, if the runtime said so: a path in the workspace and a line.
    pub file: Option<String>,
    pub line: Option<u32>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Cause {
    /// Nothing that we know: an exception, or a code it chose to exit with.
    #[default]
    Unknown,
    /// With the line that says so.
    Syntax { words: String },
    MissingModule {
        module: String,
        /// Where it can be had, if the definition knows that of its kind.
        hint: Option<String>,
    },
    /// It read more input than there was.
    NoInput,
    /// It says that it got no more memory.
    NoMemory,
}

/// Of a long stderr only this much is looked at: the end, where runtimes say it.
const SEARCHED: usize = 64 << 10;
/// What is quoted of a line, at most.
const QUOTED: usize = 300;

impl Failure {
    /// The same with `{file}` replaced by the name that the runtime was told.
    pub fn for_file(&self, file: &str) -> Self {
        let named = |patterns: &[Pattern]| -> Vec<Pattern> {
            let patterns = patterns.iter();
            patterns.map(|pattern| pattern.for_file(file)).collect()
        };
        Self {
            memory: named(&self.memory),
            syntax: named(&self.syntax),
            parser: named(&self.parser),
            missing: named(&self.missing),
            elsewhere: self.elsewhere.clone(),
            input: named(&self.input),
            reads: self.reads.clone(),
            running: named(&self.running),
            last_lines: self.last_lines,
            place: Place {
                lines: named(&self.place.lines),
                last: self.place.last,
            },
        }
    }

    /// Whether a failed run with this stderr says that it got no more memory.
    pub fn ran_out_of_memory(&self, stderr: &[u8]) -> bool {
        let says_so = |line: &[u8]| {
            let line = String::from_utf8_lossy(line);
            read(&self.memory, &line).is_some()
        };
        !self.memory.is_empty() && stderr.split(|byte| *byte == b'\n').any(says_so)
    }

    /// The pattern that tells.
    pub fn reads(&self) -> Option<&Rule> {
        self.reads.as_ref()
    }

    /// Whether a program's text says that it reads its standard input.
    pub fn reads_input(&self, code: &str) -> bool {
        self.reads.as_ref().is_some_and(|rule| rule.is_in(code))
    }

    /// What this stderr says about a run that failed.
    pub fn diagnose(&self, stderr: &[u8]) -> Diagnosis {
        let end = &stderr[stderr.len().saturating_sub(SEARCHED)..];
        let text = String::from_utf8_lossy(end);
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
            .collect();
        let (cause, found) = match self.ran_out_of_memory(stderr) {
            true => (Cause::NoMemory, Found::default()),
            false => self.cause(&lines),
        };
        let place = match found.line {
            Some(_) => found,
            None => self.place(&lines),
        };
        Diagnosis {
            cause,
            file: place.path,
            line: place.line,
        }
    }

    fn cause(&self, lines: &[&str]) -> (Cause, Found) {
        let was_running = lines.iter().any(|line| read(&self.running, line).is_some());
        let searched = self.last_lines.unwrap_or(usize::MAX);
        for line in lines.iter().rev().take(searched) {
            if let Some(mut found) = read(&self.missing, line) {
                let module = found.module.take().unwrap_or_default();
                let begins = |it: &(&String, &String)| module.starts_with(it.0.as_str());
                let known = self.elsewhere.iter().rev().find(begins);
                let hint = known.map(|(_, hint)| hint.clone());
                return (Cause::MissingModule { module, hint }, found);
            }
            let broken = || read(&self.syntax, line).filter(|_| !was_running);
            if let Some(found) = read(&self.parser, line).or_else(broken) {
                let words = line.chars().take(QUOTED).collect();
                return (Cause::Syntax { words }, found);
            }
            if let Some(found) = read(&self.input, line) {
                return (Cause::NoInput, found);
            }
        }
        (Cause::Unknown, Found::default())
    }

    fn place(&self, lines: &[&str]) -> Found {
        let named = |line: &&str| read(&self.place.lines, line);
        let found = if self.place.last {
            lines.iter().rev().find_map(named)
        } else {
            lines.iter().find_map(named)
        };
        found.unwrap_or_default()
    }
}

/// What the first pattern that fits finds in a line.
fn read(patterns: &[Pattern], line: &str) -> Option<Found> {
    patterns.iter().find_map(|pattern| pattern.read(line))
}

#[cfg(test)]
mod tests;
