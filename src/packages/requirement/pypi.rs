//! A requirement of PyPI: name, extras, versions, a marker.

use super::{Requirement, extras_of, is_name, is_whole_name};

pub(super) fn pypi(text: &str) -> Result<Requirement, &'static str> {
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
