//! A lock of Go modules: a version of Go, and a `go.sum`.

use super::super::requirement::{Ecosystem, Requirement};
use super::Lock;

/// The version of Go that the modules were chosen for, and a `go.sum`: for each module the hashes
/// of its files, and of its `go.mod` alone where only that was looked at.
pub(super) fn go_sum(text: &str) -> Result<Lock, String> {
    let (version, sums) = text.split_once('\n').unwrap_or((text, ""));
    let number = version.trim_end().strip_prefix("go ");
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.';
    let number = number.filter(|it| it.bytes().all(plain));
    let number = number.ok_or("it does not begin with a version of Go, as in `go 1.26.1`")?;
    let (mut lines, mut installed) = (Vec::new(), Vec::new());
    for line in sums.lines().filter(|it| !it.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [path, version, hash] = words[..] else {
            return Err("a line is not a module, a version and a hash".to_owned());
        };
        let (number, is_whole) = match version.strip_suffix("/go.mod") {
            Some(number) => (number, false),
            None => (version, true),
        };
        let text = format!("{path}@{number}");
        Requirement::parse(&text, Ecosystem::Go).map_err(|it| it.to_string())?;
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        let digest = hash.strip_prefix("h1:");
        let is_hash = digest.is_some_and(|it| it.len() == 44 && it.bytes().all(is_base64));
        if !number.starts_with('v') || !is_hash {
            return Err(format!("`{text}` has no exact version or no hash"));
        }
        if is_whole {
            installed.push(format!("{path}=={number}"));
        }
        lines.push(format!("{path} {version} {hash}\n"));
    }
    installed.sort();
    installed.dedup();
    lines.sort();
    lines.dedup();
    match installed.len() {
        0 => Err("it names no package".to_owned()),
        _ => Ok(Lock {
            installed,
            text: format!("go {number}\n{}", lines.concat()),
            is_verified: false,
        }),
    }
}
