//! Exact versions with their hashes, as text that a later call can bring back.

mod bun;

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use serde_json::Value;

use super::requirement::{Ecosystem, Requirement, normal};

/// More than any lock we give out.
const LONGEST: usize = 1 << 20;

/// A lock that was checked: only packages and hashes, no address and no option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// `name==version`.
    pub installed: Vec<String>,
    pub text: String,
}

impl Lock {
    /// Reads what an installer wrote, or what a caller brings back.
    pub fn read(text: &str, ecosystem: Ecosystem) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err("it is too long".to_owned());
        }
        match ecosystem {
            Ecosystem::Pypi => requirements(text),
            Ecosystem::Npm => package_lock(text),
        }
    }

    /// The lock of an installed tree; `fetched` are the files that it was made from, with
    /// the hashes of their bytes.
    pub fn of_tree(
        tree: &Path,
        ecosystem: Ecosystem,
        fetched: &[(String, String)],
    ) -> Result<Self, String> {
        let read = |error: io::Error| format!("what was installed cannot be read: {error}");
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
                    let same = |it: &&(String, String)| is_file_of(&it.0, name, version);
                    let hash = fetched.iter().rev().find(same).map(|it| it.1.as_str());
                    let hash = hash.ok_or_else(|| format!("`{name}` came from nowhere"))?;
                    text += &format!("{}=={version} --hash=sha256:{hash}\n", normal(name));
                }
                Self::read(&text, ecosystem)
            }
            Ecosystem::Npm => {
                let text = match fs::read_to_string(tree.join("package-lock.json")) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        let text = fs::read_to_string(tree.join("bun.lock")).map_err(read)?;
                        bun::package_lock(&text).ok_or("its `bun.lock` cannot be read")?
                    }
                    text => text.map_err(read)?,
                };
                Self::read(&text, ecosystem)
            }
        }
    }
}

/// Whether `numpy-2.1.0-cp311-….whl` or `numpy-2.1.0.tar.gz` is this version of a package.
fn is_file_of(file: &str, name: &str, version: &str) -> bool {
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

/// One package to a line, each with at least one hash.
fn requirements(text: &str) -> Result<Lock, String> {
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
        }),
    }
}

/// npm's own file. SECURITY: an entry could point anywhere; only what the registry's own
/// entries need is kept, and each must have a hash.
fn package_lock(text: &str) -> Result<Lock, String> {
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
        let name = parts.by_ref().last().unwrap_or_default();
        installed.push(format!("{name}=={version}"));
    }
    installed.sort();
    installed.dedup();
    match installed.len() {
        0 => Err("it names no package".to_owned()),
        _ => Ok(Lock {
            installed,
            text: lock.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(digit: &str) -> String {
        digit.repeat(64)
    }

    #[test]
    fn a_lock_is_read_in_any_layout_and_written_in_one() {
        let (a, b) = (hash("a"), hash("b"));
        let text = format!(
            "# made by x\nnumpy==2.1.0 \\\n    --hash=sha256:{a} \\\n    --hash=sha256:{b}\nabc==1 --hash=sha256:{a}\n"
        );
        let lock = Lock::read(&text, Ecosystem::Pypi).unwrap();
        assert_eq!(lock.installed, ["abc==1", "numpy==2.1.0"]);
        assert_eq!(
            lock.text,
            format!("abc==1 --hash=sha256:{a}\nnumpy==2.1.0 --hash=sha256:{a} --hash=sha256:{b}\n")
        );
        assert_eq!(Lock::read(&lock.text, Ecosystem::Pypi).unwrap(), lock);
    }

    #[test]
    fn a_tree_is_locked_to_the_files_that_it_was_made_from() {
        let folder = tempfile::TempDir::new().unwrap();
        for name in [
            "Foo_Bar-1.0+cpu.dist-info",
            "numpy-2.1.0.dist-info",
            "numpy",
            "bin",
        ] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let (a, b) = (hash("a"), hash("b"));
        let mut fetched = vec![
            ("foo_bar-1.0%2Bcpu-py3-none-any.whl".to_owned(), a.clone()),
            ("numpy-2.0.0-x.whl".into(), hash("c")),
            ("numpy-2.1.0.tar.gz".into(), b.clone()),
        ];
        let lock = Lock::of_tree(folder.path(), Ecosystem::Pypi, &fetched).unwrap();
        assert_eq!(
            lock.text,
            format!("foo-bar==1.0+cpu --hash=sha256:{a}\nnumpy==2.1.0 --hash=sha256:{b}\n")
        );
        fetched.pop();
        assert!(Lock::of_tree(folder.path(), Ecosystem::Pypi, &fetched).is_err());
    }

    #[test]
    fn nothing_but_packages_and_hashes_is_a_lock() {
        let a = hash("a");
        for text in [
            String::new(),
            "abc".into(),
            "abc==1".into(),
            format!("abc --hash=sha256:{a}"),
            "abc==1 --hash=md5:0".into(),
            format!("abc==1 --hash=sha256:{a} --index-url=x"),
            format!("--index-url=http://x\nabc==1 --hash=sha256:{a}"),
            format!("abc @ http://x --hash=sha256:{a}"),
            format!("abc==1.* --hash=sha256:{a}"),
            format!("-r x\nabc==1 --hash=sha256:{a}"),
            "x".repeat(LONGEST + 1),
        ] {
            assert!(Lock::read(&text, Ecosystem::Pypi).is_err(), "{text:.80}");
        }
        let good = r#"{"lockfileVersion":3,"packages":{"":{"dependencies":{"a":"^1"}},"node_modules/a":{"version":"1.0.0","resolved":"http://127.0.0.1/a.tgz","integrity":"sha512-x","scripts":{"x":"y"}}}}"#;
        let lock = Lock::read(good, Ecosystem::Npm).unwrap();
        assert_eq!(lock.installed, ["a==1.0.0"]);
        assert!(
            !lock.text.contains("resolved") && !lock.text.contains("scripts"),
            "{}",
            lock.text
        );
        for (from, to) in [
            ("\"node_modules/a\"", "\"../a\""),
            ("\"node_modules/a\"", "\"node_modules/../a\""),
            ("sha512-x", ""),
            ("\"1.0.0\"", "\"file:../x\""),
            ("\"^1\"", "\"git+https://x\""),
            ("\"packages\"", "\"other\""),
        ] {
            assert!(
                Lock::read(&good.replacen(from, to, 1), Ecosystem::Npm).is_err(),
                "{from} {to}"
            );
        }
    }
}
