//! Requirements of the npm registry, of Go's modules and of crates.

use super::{Requirement, extras_of, is_name};

pub(super) fn npm(text: &str) -> Result<Requirement, &'static str> {
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
pub(super) fn go(text: &str) -> Result<Requirement, &'static str> {
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
pub(super) fn crates(text: &str) -> Result<Requirement, &'static str> {
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

fn is_npm_name(name: &str) -> bool {
    // Old packages have upper case, and no new one may.
    let first = |c: char| c.is_ascii_alphanumeric();
    name.starts_with(first) && name.chars().all(|c| is_name(c) || c == '~') && name.len() <= 100
}
