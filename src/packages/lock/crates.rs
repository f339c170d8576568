//! A lock of crates: what was asked for, and a `Cargo.lock` with entries of one index.

use std::collections::HashSet;

use super::super::requirement::{Ecosystem, Requirement};
use super::{Fetched, Lock};

/// What was asked for, a crate to a comment, and cargo's own file. SECURITY: an entry could be of
/// any registry or folder, and the cell reaches none but ours; all are of one registry, with a hash.
pub(super) fn cargo_lock(text: &str) -> Result<Lock, String> {
    let (mut wanted, mut body) = (Vec::new(), String::new());
    for line in text.lines() {
        match line.strip_prefix("# ") {
            Some(line) => {
                let parsed = Requirement::parse(line, Ecosystem::Crates);
                wanted.push(parsed.map_err(|it| it.to_string())?.to_string());
            }
            None => body += &format!("{line}\n"),
        }
    }
    let file: CargoLock = toml::from_str(&body).map_err(|it| it.message().to_owned())?;
    wanted.sort();
    wanted.dedup();
    let mut written: String = wanted.iter().map(|it| format!("# {it}\n")).collect();
    written += &format!("version = {}\n", file.version);
    let mut installed = Vec::new();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.+ ".contains(&byte);
    let sources = file.package.iter().filter_map(|it| it.source.as_ref());
    let source = sources.clone().next().ok_or("it names no package")?;
    let is_index = source.starts_with("registry+") && !source.contains(['"', '\\', '\n']);
    let is_hash = |it: &String| it.len() == 64 && it.bytes().all(|it| it.is_ascii_hexdigit());
    for package in &file.package {
        let (name, version) = (&package.name, &package.version);
        let is_own = package.source.is_none() && name == "main";
        let is_kept = package.source.as_ref() == Some(source)
            && is_index
            && package.checksum.as_ref().is_some_and(is_hash);
        let words = package.dependencies.iter().chain([name, version]);
        let exact = Requirement::parse(&format!("{name}@={version}"), Ecosystem::Crates);
        if exact.is_err() || !words.clone().all(|it| it.bytes().all(plain)) || !(is_own || is_kept)
        {
            return Err("an entry is not a crate of the index with its hash".to_owned());
        }
        written += &format!("\n[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n");
        if let (Some(source), Some(checksum)) = (&package.source, &package.checksum) {
            written += &format!("source = \"{source}\"\nchecksum = \"{checksum}\"\n");
            installed.push(format!("{name}=={version}"));
        }
        let needs = package.dependencies.iter();
        let needs: String = needs.map(|it| format!(" \"{it}\",\n")).collect();
        if !needs.is_empty() {
            written += &format!("dependencies = [\n{needs}]\n");
        }
    }
    installed.sort();
    Ok(Lock {
        installed,
        text: written,
        is_verified: false,
    })
}

/// Whether the gateway has passed on a file with the hash of each entry.
pub(super) fn are_all_fetched(text: &str, fetched: &[Fetched]) -> bool {
    let known: HashSet<&str> = fetched.iter().map(|it| it.sha256.as_str()).collect();
    let lock: Result<CargoLock, _> = toml::from_str(text);
    lock.is_ok_and(|lock| {
        let mut hashes = lock.package.iter().filter_map(|it| it.checksum.as_deref());
        hashes.all(|it| known.contains(it))
    })
}

#[derive(serde::Deserialize)]
struct CargoLock {
    version: u32,
    package: Vec<CargoPackage>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct CargoPackage {
    name: String,
    version: String,
    source: Option<String>,
    checksum: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
}
