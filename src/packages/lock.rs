//! Exact versions with their hashes, as text that a later call can bring back.

pub(super) mod bun;
mod crates;
mod go;
mod npm;
mod pypi;

use std::path::Path;
use std::{fs, io};

use self::crates::cargo_lock;
use self::go::go_sum;
use self::npm::package_lock;
use self::pypi::{is_file_of, requirements};
use super::requirement::{Ecosystem, normal};

/// More than any lock we give out.
const LONGEST: usize = 1 << 20;

/// A lock that was checked: only packages and hashes, no address and no option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// `name==version`.
    pub installed: Vec<String>,
    pub text: String,
    /// Whether the server itself has seen bytes with every hash that is in it.
    pub is_verified: bool,
}

/// A file that the gateway passed on whole, with the hashes of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    pub file: String,
    /// Hexadecimal.
    pub sha256: String,
    /// As npm's registry writes it, in base 64; of its packages alone.
    pub sha512: Option<String>,
}

impl Lock {
    /// Reads what an installer wrote, or what a caller brings back.
    pub fn read(text: &str, ecosystem: Ecosystem) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err("it is too long".to_owned());
        }
        match ecosystem {
            Ecosystem::Pypi => requirements(text),
            Ecosystem::Npm => package_lock(text, None),
            Ecosystem::Go => go_sum(text),
            Ecosystem::Crates => cargo_lock(text),
        }
    }

    /// The lock of an installed tree; `fetched` are the files that it was made from, with
    /// the hashes of their bytes.
    pub fn of_tree(tree: &Path, ecosystem: Ecosystem, fetched: &[Fetched]) -> Result<Self, String> {
        let read = |error: io::Error| format!("what was installed cannot be read: {error}");
        let text = |name: &str| -> Result<String, String> {
            let path = tree.join(name);
            match fs::metadata(&path).map_err(read)?.len() {
                length if length > LONGEST as u64 => Err(format!("its {name} is too long")),
                _ => fs::read_to_string(&path).map_err(read),
            }
        };
        match ecosystem {
            Ecosystem::Pypi => {
                let mut text = String::new();
                for entry in fs::read_dir(tree).map_err(read)? {
                    let name = entry
                        .map_err(read)?
                        .file_name()
                        .to_string_lossy()
                        .into_owned();
                    let Some((name, version)) = name
                        .strip_suffix(".dist-info")
                        .and_then(|it| it.split_once('-'))
                    else {
                        continue;
                    };
                    let same = |it: &&Fetched| is_file_of(&it.file, name, version);
                    let hash = fetched.iter().rev().find(same).map(|it| it.sha256.as_str());
                    let hash = hash
                        .ok_or_else(|| format!("`{name}` was not downloaded from the registry"))?;
                    text += &format!("{}=={version} --hash=sha256:{hash}\n", normal(name));
                }
                // All its hashes are the gateway's own.
                let lock = Self::read(&text, ecosystem)?;
                Ok(Self {
                    is_verified: true,
                    ..lock
                })
            }
            Ecosystem::Npm => {
                let text = match text("package-lock.json") {
                    Ok(text) => text,
                    Err(_) => bun::package_lock(&text("bun.lock")?)
                        .ok_or("its `bun.lock` cannot be read")?,
                };
                let lock = package_lock(&text, Some(tree))?;
                let is_verified = npm::are_all_fetched(&lock.text, tree, fetched);
                Ok(Self {
                    is_verified,
                    ..lock
                })
            }
            Ecosystem::Crates => {
                let list = text("Cargo.toml")?;
                let wanted = list.lines().filter(|it| it.starts_with("# "));
                let wanted: String = wanted.map(|it| format!("{it}\n")).collect();
                let lock = text("Cargo.lock")?;
                // Cargo's own first lines are no wishes.
                let own = lock.lines().skip_while(|it| it.starts_with('#'));
                let own: String = own.map(|it| format!("{it}\n")).collect();
                let lock = Self::read(&format!("{wanted}{own}"), ecosystem)?;
                let is_verified = crates::are_all_fetched(&own, fetched);
                Ok(Self {
                    is_verified,
                    ..lock
                })
            }
            // Its hashes are of what is in an archive, which only passes through here.
            Ecosystem::Go => {
                let own = text("go.mod")?;
                let version = own.lines().find(|it| it.starts_with("go "));
                let sums = text("go.sum")?;
                Self::read(
                    &format!("{}\n{sums}", version.unwrap_or_default()),
                    ecosystem,
                )
            }
        }
    }
}

#[cfg(test)]
mod tests;
