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
            Ecosystem::Npm => package_lock(text, None),
            Ecosystem::Go => go_sum(text),
            Ecosystem::Crates => cargo_lock(text),
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
                    let same = |it: &&(String, String)| is_file_of(&it.0, name, version);
                    let hash = fetched.iter().rev().find(same).map(|it| it.1.as_str());
                    let hash = hash
                        .ok_or_else(|| format!("`{name}` was not downloaded from the registry"))?;
                    text += &format!("{}=={version} --hash=sha256:{hash}\n", normal(name));
                }
                Self::read(&text, ecosystem)
            }
            Ecosystem::Npm => {
                let text = match text("package-lock.json") {
                    Ok(text) => text,
                    Err(_) => bun::package_lock(&text("bun.lock")?)
                        .ok_or("its `bun.lock` cannot be read")?,
                };
                package_lock(&text, Some(tree))
            }
            Ecosystem::Crates => {
                let list = text("Cargo.toml")?;
                let wanted = list.lines().filter(|it| it.starts_with("# "));
                let wanted: String = wanted.map(|it| format!("{it}\n")).collect();
                let lock = text("Cargo.lock")?;
                // Cargo's own first lines are no wishes.
                let own = lock.lines().skip_while(|it| it.starts_with('#'));
                let own: String = own.map(|it| format!("{it}\n")).collect();
                Self::read(&format!("{wanted}{own}"), ecosystem)
            }
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
/// entries need is kept, and each must have a hash. It also lists what other machines
/// would install; of that nothing is in `tree`.
fn package_lock(text: &str, tree: Option<&Path>) -> Result<Lock, String> {
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
        }),
    }
}

/// The version of Go that the modules were chosen for, and a `go.sum`: for each module the hashes
/// of its files, and of its `go.mod` alone where only that was looked at.
fn go_sum(text: &str) -> Result<Lock, String> {
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
        }),
    }
}

/// What was asked for, a crate to a comment, and cargo's own file. SECURITY: an entry could be of
/// any registry or folder, and the cell reaches none but ours; all are of one registry, with a hash.
fn cargo_lock(text: &str) -> Result<Lock, String> {
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
    fn a_lock_of_go_has_modules_and_hashes_and_nothing_else() {
        let hash = format!("h1:{}=", "A".repeat(43));
        let good = format!(
            "go 1.26.1\nb.c/d v1.0.0 {hash}\na.b/c v0.1.0-x+incompatible/go.mod {hash}\nb.c/d v1.0.0/go.mod {hash}\n"
        );
        let lock = Lock::read(&good, Ecosystem::Go).unwrap();
        assert_eq!(lock.installed, ["b.c/d==v1.0.0"]);
        assert!(lock.text.starts_with("go 1.26.1\na.b/c "), "{}", lock.text);
        assert_eq!(Lock::read(&lock.text, Ecosystem::Go).unwrap(), lock);
        for (from, to) in [
            ("go 1.26.1", "module x"),
            ("go 1.26.1", "go 1.26.1 ("),
            ("b.c/d v1.0.0 ", "b.c/d v1.0.0/go.mod "),
            ("b.c/d v1.0.0 ", "../d v1.0.0 "),
            ("b.c/d v1.0.0 ", "b.c/d latest "),
            ("b.c/d v1.0.0 ", "b.c/d v1.0.0 => ../x "),
            ("h1:", "h2:"),
            ("A=", "="),
        ] {
            let bad = good.replacen(from, to, 1);
            assert!(Lock::read(&bad, Ecosystem::Go).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_lock_of_cargo_has_crates_of_one_index_and_nothing_else() {
        let good = format!(
            "# rand@0.8\nversion = 4\n\n[[package]]\nname = \"main\"\nversion = \"0.0.0\"\ndependencies = [\n \"rand\",\n]\n\n[[package]]\nname = \"rand\"\nversion = \"0.8.5\"\nsource = \"registry+https://i.example\"\nchecksum = \"{}\"\n",
            hash("a")
        );
        let lock = Lock::read(&good, Ecosystem::Crates).unwrap();
        assert_eq!(
            (&lock.text, &lock.installed),
            (&good, &vec!["rand==0.8.5".to_owned()])
        );
        for (from, to) in [
            ("# rand@0.8", "# rand@../x"),
            ("# rand@0.8", "rand@0.8"),
            ("registry+", "git+"),
            ("source = ", "other = "),
            ("checksum = \"a", "checksum = \""),
            ("name = \"rand\"", "name = \"../rand\""),
            ("name = \"main\"", "name = \"other\""),
            ("\"0.8.5\"", "\"x\""),
            (" \"rand\",", " \"rand (path+file:///x)\","),
        ] {
            let bad = good.replacen(from, to, 1);
            assert!(Lock::read(&bad, Ecosystem::Crates).is_err(), "{bad}");
        }
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
        let tree = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(tree.path().join("node_modules/a")).expect("a folder");
        let both = good.replacen(
            "}}}",
            r#"}},"node_modules/b":{"version":"1.0.0","integrity":"sha512-x","optional":true}}"#,
            1,
        );
        let lock = package_lock(&both, Some(tree.path())).expect("it is right");
        assert_eq!(lock.installed, ["a==1.0.0"], "`b` is for another machine");
        assert!(lock.text.contains("node_modules/b"), "{}", lock.text);
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
