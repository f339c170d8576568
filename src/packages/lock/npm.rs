//! A lock of the npm registry: a `package-lock.json` with nothing in it that leads elsewhere.

use std::collections::HashSet;
use std::path::Path;

use serde_json::Value;

use super::super::requirement::{Ecosystem, Requirement};
use super::{Fetched, Lock};

/// npm's own file. SECURITY: an entry could point anywhere; only what the registry's own
/// entries need is kept, and each must have a hash. It also lists what other machines
/// would install; of that nothing is in `tree`.
pub(super) fn package_lock(text: &str, tree: Option<&Path>) -> Result<Lock, String> {
    let mut lock: Value = serde_json::from_str(text).map_err(|_| "it is not JSON".to_owned())?;
    let packages = lock.get_mut("packages").and_then(Value::as_object_mut);
    let packages = packages.ok_or("it has no `packages`")?;
    let mut installed = Vec::new();
    for (path, entry) in packages.iter_mut() {
        let entry = entry.as_object_mut().ok_or("an entry is not an object")?;
        let keep = [
            "version",
            "integrity",
            "dependencies",
            "optionalDependencies",
            "peerDependencies",
            "peerDependenciesMeta",
            "engines",
            "os",
            "cpu",
            "libc",
            "optional",
            "dev",
            "peer",
            "devOptional",
            "bin",
        ];
        entry.retain(|key, _| keep.contains(&key.as_str()));
        if path.is_empty() {
            let own = entry.get("dependencies").and_then(Value::as_object);
            for (name, versions) in own.into_iter().flatten() {
                let text = format!("{name}@{}", versions.as_str().unwrap_or("-"));
                Requirement::parse(&text, Ecosystem::Npm).map_err(|it| it.to_string())?;
            }
            continue;
        }
        let mut parts = path
            .split("node_modules/")
            .skip(1)
            .map(|it| it.trim_end_matches('/'));
        let is_path = path.starts_with("node_modules/")
            && parts
                .clone()
                .all(|it| Requirement::parse(it, Ecosystem::Npm).is_ok_and(|it| it.is_bare()));
        let version = entry
            .get("version")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let has_hash = entry
            .get("integrity")
            .and_then(Value::as_str)
            .is_some_and(|it| it.starts_with("sha"));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+-".contains(&byte);
        if !is_path || !has_hash || version.is_empty() || !version.bytes().all(plain) {
            let short: String = path.chars().take(60).collect();
            return Err(format!(
                "its entry `{}` is not a package of the registry",
                short.escape_debug()
            ));
        }
        if tree.is_none_or(|tree| tree.join(&**path).is_dir()) {
            let name = parts.by_ref().last().unwrap_or_default();
            installed.push(format!("{name}=={version}"));
        }
    }
    installed.sort();
    installed.dedup();
    match installed.len() {
        0 => Err("it names no package".to_owned()),
        _ => Ok(Lock {
            installed,
            text: lock.to_string(),
            is_verified: false,
        }),
    }
}

/// Whether the gateway has passed on a file with the hash of each entry that is in the tree.
pub(super) fn are_all_fetched(text: &str, tree: &Path, fetched: &[Fetched]) -> bool {
    let lock: Value = serde_json::from_str(text).unwrap_or_default();
    let packages = lock.get("packages").and_then(Value::as_object);
    let known: HashSet<&str> = fetched
        .iter()
        .filter_map(|it| it.sha512.as_deref())
        .collect();
    let is_fetched = |entry: &Value| {
        let hashes = entry["integrity"].as_str().unwrap_or_default().split(' ');
        let mut hashes = hashes.filter_map(|it| it.strip_prefix("sha512-"));
        hashes.any(|it| known.contains(it))
    };
    packages.is_some_and(|packages| {
        let mut there = packages
            .iter()
            .filter(|(path, _)| !path.is_empty() && tree.join(&***path).is_dir());
        there.all(|(_, entry)| is_fetched(entry))
    })
}
