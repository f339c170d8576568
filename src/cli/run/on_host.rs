//! A file that a program did not find in its sandbox, and that is there on this machine.

use std::path::{Component, Path, PathBuf};

/// Words with which programs and their runtimes say that a file is missing, in small letters.
const MISSING: [&str; 6] = [
    "no such file",
    "not found",
    "enoent",
    "cannot open",
    "does not exist",
    "could not find",
];
/// What is looked at of all that a program says.
const LINES: usize = 40;
const WORDS: usize = 60;
/// Folders that a sandbox has of its own: what is missing there is no file of this machine.
const OWN: [&str; 15] = [
    "bin",
    "dev",
    "etc",
    "lib",
    "lib64",
    "opt",
    "proc",
    "run",
    "sbin",
    "sys",
    "tmp",
    "usr",
    "var",
    "work",
    "workspace",
];

/// A file that a program missed.
#[derive(Debug, PartialEq, Eq)]
pub enum Missed {
    /// It is on this machine, and the program gave its path below its own folder.
    Here(PathBuf),
    /// The same of one whose whole path the program gave.
    Whole(PathBuf),
    /// A whole path that no sandbox has by itself. Nobody looked whether it is on this machine.
    Elsewhere(PathBuf),
}

/// The first file that `said` misses and that is in one of these folders, or else may be on this machine. It is not `own`, the program itself,
/// which shells name in every message.
///
/// SECURITY: a program chooses these names. They are looked up below the folders only: elsewhere looking alone may do something, as where a
/// name of a file mounts another machine's.
pub fn find(said: &str, folders: &[&Path], own: Option<&Path>) -> Option<Missed> {
    let lines = said.lines().rev().take(LINES);
    let missing = lines.filter(|line| {
        let line = line.to_lowercase();
        MISSING.iter().any(|words| line.contains(words))
    });
    let words = missing.flat_map(|line| {
        line.split(|it: char| it.is_whitespace() || "'\"`‘’“”<>(),;".contains(it))
    });
    let words = words.map(|word| word.trim_end_matches([':', '.']).trim_start_matches("./"));
    let words = words.map(|word| word.strip_prefix("/workspace/").unwrap_or(word));
    let words = words.filter(|word| word.contains(['/', '.']));
    let words: Vec<&str> = words.take(WORDS).collect();
    let is_there = |path: &PathBuf| {
        let found = path.symlink_metadata().is_ok_and(|it| !it.is_symlink());
        found && own != Some(path.as_path())
    };
    let here = words.iter().find_map(|word| {
        folders.iter().find_map(|folder| {
            let below = Path::new(word).strip_prefix(folder).ok();
            let below = below.filter(|it| !is_hidden(it));
            let name = below.and_then(Path::to_str).unwrap_or(*word);
            let path = Some(folder.join(name)).filter(|path| is_plain(name) && is_there(path))?;
            Some(match below {
                Some(_) => Missed::Whole(path),
                None => Missed::Here(path),
            })
        })
    });
    here.or_else(|| {
        let elsewhere = words.iter().find(|word| is_elsewhere(word));
        elsewhere.map(|word| Missed::Elsewhere(word.into()))
    })
}

/// Whether it is a path below a folder, and looks like a file's: a word is mostly no file.
fn is_plain(word: &str) -> bool {
    let path = Path::new(word);
    let is_below = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    (2..=255).contains(&word.len())
        && is_below
        && (word.contains('/') || path.extension().is_some())
}

/// Whether it is a whole path, two folders deep at least, that no sandbox has by itself. It goes into a command that somebody may copy.
fn is_elsewhere(word: &str) -> bool {
    let is_safe = |it: char| it.is_alphanumeric() || "/._-+@".contains(it);
    let Some(below) = word.strip_prefix('/').filter(|it| it.chars().all(is_safe)) else {
        return false;
    };
    let first = below.split('/').next().unwrap_or_default();
    is_plain(below) && below.contains('/') && !OWN.contains(&first) && !is_hidden(Path::new(below))
}

/// SECURITY: a program chooses what it misses. Folders whose names begin with a dot hold keys, and no hint of ours says to show them to it.
fn is_hidden(path: &Path) -> bool {
    let mut parts = path.components();
    parts.any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missed_is_found_and_nothing_elsewhere() {
        let folder = tempfile::tempdir().expect("a folder");
        let here = folder.path();
        std::fs::write(here.join("data.csv"), "1").expect("a file");
        std::os::unix::fs::symlink("/etc/passwd", here.join("link.txt")).expect("a link");
        for said in [
            "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'",
            "cat: data.csv: No such file or directory",
            "Error: ENOENT: no such file or directory, open '/workspace/data.csv'",
            "x\nsh: 1: cannot open ./data.csv: No such file\ny",
        ] {
            assert_eq!(
                find(said, &[here], None),
                Some(Missed::Here(here.join("data.csv"))),
                "{said}"
            );
        }
        for said in [
            "data.csv is fine",
            "no such file: ../data.csv",
            "no such file: /etc/passwd",
            "no such file: /data.csv",
            "no such file: /home/u/$(id).csv",
            "no such file: /home/../etc/passwd",
            "no such file: /home/u/.ssh/id.pub",
            "no such file: link.txt",
            "no such file: other.csv",
        ] {
            assert_eq!(find(said, &[here], None), None, "{said}");
        }
        let whole = here.join("data.csv");
        let said = format!("No such file or directory: '{}'", whole.display());
        assert_eq!(find(&said, &[here], None), Some(Missed::Whole(whole)));
        let said = "No such file or directory: '/home/u/data.csv'";
        let elsewhere = Some(Missed::Elsewhere("/home/u/data.csv".into()));
        assert_eq!(find(said, &[here], None), elsewhere);
        let said = "data.csv: line 1: other.csv: No such file or directory";
        let own = here.join("data.csv");
        assert_eq!(find(said, &[here], Some(&own)), None);
    }
}
