//! What a package may be called, and in which versions: a strict grammar.
//!
//! SECURITY: this is all that ever reaches an installer's input of what a caller
//! wrote. No option, path, address or marker that is not understood gets through, so
//! nothing here depends on how an installer reads its arguments.

use std::fmt;

pub use crate::language::Ecosystem;

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

fn pypi(text: &str) -> Result<Requirement, &'static str> {
    let (text, marker) = match text.split_once(';') {
        Some((text, marker)) => (text.trim(), Some(marker.trim())),
        None => (text, None),
    };
    let end = text.find(|c: char| !is_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if !is_whole_name(name) {
        return Err("its name must be letters, digits and `._-`, as on PyPI");
    }
    let (extras, versions) = extras_of(rest.trim())?;
    let versions = versions.strip_prefix('(').map_or(versions, |inside| {
        inside.strip_suffix(')').unwrap_or(versions)
    });
    let mut clauses = Vec::new();
    for clause in versions
        .split(',')
        .map(str::trim)
        .filter(|_| !versions.is_empty())
    {
        clauses.push(clause_of(clause)?);
    }
    let marker = match marker {
        Some(marker) => format!("; {}", marker_of(marker)?),
        None => String::new(),
    };
    Ok(Requirement {
        name: name.to_owned(),
        rest: format!("{extras}{}{marker}", clauses.join(",")),
    })
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

fn clause_of(clause: &str) -> Result<String, &'static str> {
    const SIGNS: [&str; 8] = ["===", "==", "!=", "<=", ">=", "~=", "<", ">"];
    let sign = SIGNS.into_iter().find(|sign| clause.starts_with(sign));
    let sign = sign.ok_or("after its name come versions, as in `name>=1.2,<2`")?;
    let version = clause[sign.len()..].trim();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".*+!_-".contains(&byte);
    if version.is_empty() || !version.bytes().all(plain) || version.starts_with('-') {
        return Err("its version is none");
    }
    Ok(format!("{sign}{version}"))
}

/// Checks a marker word by word, and writes it anew.
fn marker_of(marker: &str) -> Result<String, &'static str> {
    const WRONG: &str = "its marker is none, as in `; python_version < \"3.11\"`";
    const NAMES: [&str; 13] = [
        "python_version",
        "python_full_version",
        "os_name",
        "sys_platform",
        "platform_machine",
        "platform_system",
        "platform_release",
        "platform_version",
        "implementation_name",
        "implementation_version",
        "platform_python_implementation",
        "extra",
        "and",
    ];
    let mut words = Vec::new();
    let mut rest = marker.trim();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '(' | ')' => 1,
            '"' | '\'' => 2 + rest[1..].find(first).ok_or(WRONG)?,
            '<' | '>' | '=' | '!' | '~' => {
                rest.find(|c| !"<>=!~".contains(c)).unwrap_or(rest.len())
            }
            _ => rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(rest.len()),
        };
        if length == 0 {
            return Err(WRONG);
        }
        let word = &rest[..length];
        let inside = |c: char| c.is_ascii_alphanumeric() || "._+ -*".contains(c);
        let good = match first {
            '(' | ')' => true,
            '"' | '\'' => word[1..length - 1].chars().all(inside),
            '<' | '>' | '=' | '!' | '~' => {
                ["<", ">", "<=", ">=", "==", "!=", "~=", "==="].contains(&word)
            }
            _ => NAMES.contains(&word) || ["or", "in", "not"].contains(&word),
        };
        if !good {
            return Err(WRONG);
        }
        words.push(word);
        rest = rest[length..].trim_start();
    }
    if words.len() < 3 {
        return Err(WRONG);
    }
    Ok(words.join(" "))
}

fn npm(text: &str) -> Result<Requirement, &'static str> {
    let (scope, rest) = match text.strip_prefix('@') {
        Some(inside) => {
            let (scope, rest) = inside.split_once('/').ok_or("a scope is followed by `/`")?;
            if !is_npm_name(scope) {
                return Err("its scope must be lower case letters, digits and `._-`");
            }
            (format!("@{scope}/"), rest)
        }
        None => (String::new(), text),
    };
    let (name, versions) = match rest.split_once('@') {
        Some((name, versions)) => (name, Some(versions.trim())),
        None => (rest, None),
    };
    if !is_npm_name(name) {
        return Err("its name must be lower case letters, digits and `._-`, as on npm");
    }
    let rest = match versions {
        Some(versions) => {
            // A range of semver: what could name a tag, a file or an address does not fit.
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".*+-^~<>=| ".contains(&byte);
            let words = versions.split([' ', '|']).filter(|word| !word.is_empty());
            let is_version = |word: &str| {
                let word = word.trim_start_matches(['^', '~', '<', '>', '=']);
                word.starts_with(|c: char| c.is_ascii_digit() || c == '*')
                    || ["x", "latest", "-", ""].contains(&word)
            };
            if versions.is_empty() || !versions.bytes().all(plain) || !words.clone().all(is_version)
            {
                return Err("its version is none, as in `name@^1.2`");
            }
            format!("@{versions}")
        }
        None => String::new(),
    };
    Ok(Requirement {
        name: format!("{scope}{name}"),
        rest,
    })
}

/// A module or a package in one, by its path, and a version as `go get` reads it.
fn go(text: &str) -> Result<Requirement, &'static str> {
    let (path, version) = match text.split_once('@') {
        Some((path, version)) => (path, Some(version)),
        None => (text, None),
    };
    let (host, _) = path.split_once('/').unwrap_or((path, ""));
    if !host.contains('.') || !path.split('/').all(is_path_part) {
        return Err("it must be a module's path, as in `github.com/google/uuid`");
    }
    let rest = match version {
        Some(version) => {
            let bare = version.trim_start_matches(['<', '>', '=']);
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
            let first = bare.starts_with(|c: char| c.is_ascii_alphanumeric());
            if !first || !bare.bytes().all(plain) || version.len() - bare.len() > 2 {
                return Err("its version is none, as in `github.com/google/uuid@v1.6.0`");
            }
            format!("@{version}")
        }
        None => String::new(),
    };
    Ok(Requirement {
        name: path.to_owned(),
        rest,
    })
}

/// A crate, perhaps with features and a range of versions: `tokio[rt,macros]@1.40`.
fn crates(text: &str) -> Result<Requirement, &'static str> {
    let (name, rest) = text.split_at(text.find(['[', '@']).unwrap_or(text.len()));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if !first || !name.bytes().all(plain) || name.len() > 64 {
        return Err("its name must be letters, digits and `_-`, as in the index of crates");
    }
    let (features, rest) = extras_of(rest)?;
    let versions = match rest.strip_prefix('@') {
        Some(versions) => {
            let is_version = |clause: &str| {
                let bare = clause.trim().trim_start_matches(['^', '~', '<', '>', '=']);
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".*+-".contains(&byte);
                let bare = bare.trim_start();
                bare.starts_with(|c: char| c.is_ascii_digit() || c == '*')
                    && bare.bytes().all(plain)
            };
            if !versions.split(',').all(is_version) {
                return Err("its version is none, as in `rand@0.8`");
            }
            format!("@{versions}")
        }
        None if rest.is_empty() => String::new(),
        None => return Err("after its features come versions, as in `serde[derive]@1`"),
    };
    Ok(Requirement {
        name: name.to_owned(),
        rest: format!("{features}{versions}"),
    })
}

/// One element of a module's path.
fn is_path_part(part: &str) -> bool {
    let first = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '~';
    let plain = |c: char| c.is_ascii_alphanumeric() || "._~+-".contains(c);
    part.starts_with(first) && part.chars().all(plain) && !part.ends_with('.')
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-".contains(c)
}

fn is_whole_name(name: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric();
    name.starts_with(ends) && name.ends_with(ends) && name.chars().all(is_name) && name.len() <= 100
}

fn is_npm_name(name: &str) -> bool {
    // Old packages have upper case, and no new one may.
    let first = |c: char| c.is_ascii_alphanumeric();
    name.starts_with(first) && name.chars().all(|c| is_name(c) || c == '~') && name.len() <= 100
}

fn shown(text: &str) -> String {
    let short: String = text.chars().take(60).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{}{more}", short.escape_debug())
}

#[cfg(test)]
mod tests;
