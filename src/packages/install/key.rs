//! What a set of packages depends on, as one name.

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::packages::PackagePlan;
use crate::request::Ecosystem;

/// The name of all that a set depends on. SECURITY: whether code of packages may run while they are installed is a part of it: what such
/// code made is never found by whoever does not allow it.
pub fn key(packages: &PackagePlan, base: &str, may_build: bool) -> String {
    let wishes = &packages.wishes;
    let all: Vec<String> = wishes.all(true).iter().map(ToString::to_string).collect();
    let kept: Vec<String> = wishes.kept.iter().map(ToString::to_string).collect();
    let lock = wishes.lock.as_deref().unwrap_or_default();
    let built = if may_build { "built" } else { "unpacked" };
    hash(
        packages,
        base,
        &[&all.join("\n"), &kept.join("\n"), lock, built],
    )
}

fn hash(packages: &PackagePlan, base: &str, parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    let mut how = format!("{:?}", packages.how.installers);
    if packages.how.from == Ecosystem::Npm {
        // What is beside the packages: `npm_commands`.
        how.push_str("bin");
    }
    let runtime = identity(&packages.runtime.path);
    let version = env!("CARGO_PKG_VERSION");
    for part in [version, base, &how, &packages.runtime.program, &runtime]
        .iter()
        .chain(parts)
    {
        // With its length, so that two fields never look like two others.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Changes whenever the runtime is replaced.
fn identity(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).ok();
    let facts = found.map(|it| (it.len(), it.ino(), it.mtime(), it.mtime_nsec()));
    format!("{} {facts:?}", path.display())
}
