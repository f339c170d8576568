//! The commands of npm packages, as files in `bin`. npm's own are links, which a tree does not have.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path};

use serde::Deserialize;

/// More than any set has, and larger than any manifest is.
const MOST: usize = 2000;
const LONGEST: u64 = 1 << 20;

/// The part of a `package.json` that says what its commands are.
#[derive(Deserialize)]
struct Manifest {
    name: Option<String>,
    bin: Option<Bin>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Bin {
    One(String),
    Several(BTreeMap<String, String>),
}

/// Writes a file for each command of the packages in `node_modules` of a tree.
///
/// SECURITY: what they are called and where they lead was written by strangers, and this is done outside of a cell: a name is one plain
/// component of a path, and what it leads to is within its package and only named in the file.
pub fn write(tree: &Path) -> io::Result<()> {
    let mut commands = BTreeMap::new();
    for package in packages(&tree.join("node_modules")) {
        let folder = tree.join("node_modules").join(&package);
        for (name, path) in of_package(&folder) {
            if commands.len() < MOST && is_name(&name) && is_inside(&path) {
                let is_script = is_script(&folder.join(&path));
                commands.insert(name, (format!("{package}/{path}"), is_script));
            }
        }
    }
    // An installer that made the folder itself has made something else.
    if commands.is_empty() || fs::symlink_metadata(tree.join("bin")).is_ok() {
        return Ok(());
    }
    DirBuilder::new().mode(0o755).create(tree.join("bin"))?;
    for (name, (path, is_script)) in commands {
        let node = if is_script { "node " } else { "" };
        let text = format!("#!/bin/sh\nexec {node}\"${{0%/*}}/../node_modules/{path}\" \"$@\"\n");
        let file = tree.join("bin").join(name);
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o755)
            .open(file)?;
        file.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// The names of all packages at the top, with their scopes.
fn packages(folder: &Path) -> Vec<String> {
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let folders = entries.filter(|it| it.file_type().is_ok_and(|it| it.is_dir()));
        let names = folders.filter_map(|it| it.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|it| !it.starts_with('.')).collect();
        names.sort();
        names
    };
    let all = names(folder)
        .into_iter()
        .flat_map(|name| match name.starts_with('@') {
            false => vec![name],
            true => {
                let inside = names(&folder.join(&name)).into_iter();
                inside.map(|it| format!("{name}/{it}")).collect()
            }
        });
    all.filter(|it| is_inside(it)).collect()
}

fn of_package(folder: &Path) -> Vec<(String, String)> {
    let mut text = Vec::new();
    let read =
        open(&folder.join("package.json")).map(|file| file.take(LONGEST).read_to_end(&mut text));
    let manifest = read.and_then(|_| serde_json::from_slice::<Manifest>(&text).ok());
    let Some(Manifest {
        name,
        bin: Some(bin),
    }) = manifest
    else {
        return Vec::new();
    };
    match bin {
        Bin::Several(all) => all.into_iter().collect(),
        Bin::One(path) => {
            let name = name.unwrap_or_default();
            let name = name.rsplit('/').next().unwrap_or_default();
            vec![(name.to_owned(), path)]
        }
    }
}

/// Whether node runs it: anything but a program of the machine, or a script that names another interpreter.
fn is_script(path: &Path) -> bool {
    let mut head = [0; 128];
    let read = open(path).and_then(|mut file| file.read(&mut head).ok());
    let head = &head[..read.unwrap_or_default()];
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    !head.starts_with(b"\x7fELF") && (!line.starts_with("#!") || line.contains("node"))
}

fn open(path: &Path) -> Option<File> {
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let file = File::options().read(true).custom_flags(no_link).open(path);
    file.ok()
        .filter(|it| it.metadata().is_ok_and(|it| it.is_file()))
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.len() <= 100
        && name.chars().all(plain)
}

/// Whether a path leads nowhere else, and means nothing to a shell.
fn is_inside(path: &str) -> bool {
    let parts = Path::new(path).components();
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+@/ ~".contains(c);
    let is_part = |it: Component<'_>| matches!(it, Component::Normal(_) | Component::CurDir);
    !path.is_empty() && path.len() <= 500 && parts.clone().all(is_part) && path.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_packages_are_files_and_none_leads_out_of_its_package() {
        let tree = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = tree.path().join("node_modules").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("one/package.json", r#"{"name": "one", "bin": "./cli.js"}"#);
        put("one/cli.js", "#!/usr/bin/env node\n");
        put(
            "@s/two/package.json",
            r#"{"name": "@s/two", "bin": {"two-a": "a.sh", "two-b": "b"}}"#,
        );
        put("@s/two/a.sh", "#!/bin/sh\n");
        put("@s/two/b", "\x7fELF");
        put(
            "bad/package.json",
            r#"{"name": "bad", "bin": {"../x": "a", "a/b": "a", "out": "../one/cli.js", "root": "/bin/sh", "shell": "a$(id).js", ".hidden": "a"}}"#,
        );
        put("none/package.json", "{");
        write(tree.path()).unwrap();
        let text = |name: &str| fs::read_to_string(tree.path().join("bin").join(name)).unwrap();
        assert!(text("one").contains("exec node \"") && text("one").contains("/one/./cli.js\""));
        for (name, path) in [("two-a", "@s/two/a.sh"), ("two-b", "@s/two/b")] {
            assert!(text(name).contains(&format!("/../node_modules/{path}\"")));
            assert!(text(name).contains("exec \""));
        }
        let all = fs::read_dir(tree.path().join("bin")).unwrap().count();
        assert_eq!(all, 3);
    }
}
