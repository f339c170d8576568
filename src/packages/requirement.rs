//! What a package may be called, and in which versions: a strict grammar.
//!
//! SECURITY: this is all that ever reaches an installer's input of what a caller
//! wrote. No option, path, address or marker that is not understood gets through, so
//! nothing here depends on how an installer reads its arguments.

mod others;
mod pypi;

use std::fmt;

use self::others::{crates, go, npm};
use self::pypi::pypi;
pub use crate::request::Ecosystem;

/// One package, perhaps with extras and versions: as its registry's tools write it.
///
/// Only [`Requirement::parse`] makes one, so it is safe as a line of an installer's input.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    name: String,
    /// Extras, versions and markers.
    rest: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a package: {why}", shown(text))]
pub struct BadRequirement {
    pub text: String,
    pub why: &'static str,
}

/// Longer than any that makes sense.
const LONGEST: usize = 300;

impl Requirement {
    pub fn parse(text: &str, ecosystem: Ecosystem) -> Result<Self, BadRequirement> {
        let fail = |why| BadRequirement {
            text: text.to_owned(),
            why,
        };
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed.len() > LONGEST || !trimmed.is_ascii() {
            return Err(fail("give a name of at most 300 plain characters"));
        }
        match ecosystem {
            Ecosystem::Pypi => pypi(trimmed),
            Ecosystem::Npm => npm(trimmed),
            Ecosystem::Go => go(trimmed),
            Ecosystem::Crates => crates(trimmed),
        }
        .map_err(fail)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a version was named.
    pub fn is_bare(&self) -> bool {
        self.rest.is_empty()
    }

    /// The name by which two ways to write it are the same.
    pub fn key(&self) -> String {
        // Paths are told apart letter by letter.
        match self.name.contains('/') {
            true => self.name.clone(),
            false => normal(&self.name),
        }
    }

    /// The versions, as npm and cargo write them in a list of dependencies.
    pub fn versions(&self) -> &str {
        self.rest.split_once('@').map_or("*", |it| it.1)
    }

    /// The extras.
    pub fn extras(&self) -> impl Iterator<Item = &str> {
        let inside = self
            .rest
            .strip_prefix('[')
            .and_then(|it| it.split_once(']'));
        let inside = inside.map_or("", |it| it.0).split(',');
        inside.filter(|it| !it.is_empty())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, self.rest)
    }
}

/// PyPI does not tell `-`, `_` and `.` or cases apart, nor runs of them.
pub fn normal(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '-' | '_' | '.' if out.ends_with('-') => {}
            '-' | '_' | '.' => out.push('-'),
            c => out.push(c.to_ascii_lowercase()),
        }
    }
    out
}

/// The extras at the beginning, written anew, and what follows them.
fn extras_of(text: &str) -> Result<(String, &str), &'static str> {
    let Some(inside) = text.strip_prefix('[') else {
        return Ok((String::new(), text));
    };
    let (inside, after) = inside.split_once(']').ok_or("its `[` has no `]`")?;
    let extras: Vec<&str> = inside.split(',').map(str::trim).collect();
    match extras.iter().all(|extra| is_whole_name(extra)) {
        true => Ok((format!("[{}]", extras.join(",")), after.trim())),
        false => Err("its extras must be names"),
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-".contains(c)
}

fn is_whole_name(name: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric();
    name.starts_with(ends) && name.ends_with(ends) && name.chars().all(is_name) && name.len() <= 100
}

fn shown(text: &str) -> String {
    let short: String = text.chars().take(60).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{}{more}", short.escape_debug())
}

#[cfg(test)]
mod tests;
