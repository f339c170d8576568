//! A lock of PyPI: requirements with hashes, as pip and uv read them.

use std::collections::BTreeMap;

use super::super::requirement::{Ecosystem, Requirement, normal};
use super::Lock;

/// One package to a line, each with at least one hash.
pub(super) fn requirements(text: &str) -> Result<Lock, String> {
    let mut lines = BTreeMap::new();
    for line in text.replace("\\\r\n", " ").replace("\\\n", " ").lines() {
        let mut words = line.split_whitespace();
        let Some(first) = words.next().filter(|it| !it.starts_with('#')) else {
            continue;
        };
        let parsed = Requirement::parse(first, Ecosystem::Pypi).map_err(|it| it.to_string())?;
        let written = parsed.to_string();
        let version = written
            .split_once("==")
            .filter(|it| !it.1.contains([',', '*', ';', '=']));
        let (_, version) = version.ok_or_else(|| format!("`{written}` names no exact version"))?;
        let mut hashes = Vec::new();
        for word in words {
            let hash = word.strip_prefix("--hash=sha256:");
            let is_hash =
                |hash: &&str| hash.len() == 64 && hash.bytes().all(|it| it.is_ascii_hexdigit());
            hash.filter(is_hash)
                .ok_or_else(|| format!("`{written}` has something other than a hash"))?;
            hashes.push(word);
        }
        if hashes.is_empty() {
            return Err(format!("`{written}` has no hash"));
        }
        let name = normal(parsed.name());
        lines.insert(
            name,
            (
                format!("{}=={version}", parsed.name()),
                format!("{written} {}\n", hashes.join(" ")),
            ),
        );
    }
    match lines.len() {
        0 => Err("it names no package".to_owned()),
        _ => Ok(Lock {
            installed: lines.values().map(|it| it.0.clone()).collect(),
            text: lines.into_values().map(|it| it.1).collect(),
            is_verified: false,
        }),
    }
}

/// Whether `numpy-2.1.0-cp311-….whl` or `numpy-2.1.0.tar.gz` is this version of a package.
pub(super) fn is_file_of(file: &str, name: &str, version: &str) -> bool {
    let file = file
        .replace("%2B", "+")
        .replace("%2b", "+")
        .replace("%21", "!");
    let (own, own_version) = match file.strip_suffix(".whl") {
        Some(wheel) => {
            let mut parts = wheel.split('-');
            (
                parts.next().unwrap_or_default(),
                parts.next().unwrap_or_default(),
            )
        }
        None => {
            let base = file.trim_end_matches(".tar.gz").trim_end_matches(".zip");
            base.rsplit_once('-').unwrap_or((base, ""))
        }
    };
    // A local version is written in two ways: `1.0+cpu.1`, `1.0_cpu_1`.
    normal(own) == normal(name)
        && normal(&own_version.replace('+', "_")) == normal(&version.replace('+', "_"))
}
