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

/// The first file that `said` misses and that is in one of these folders. It is not `own`, the program itself, which shells name in every message.
///
/// SECURITY: a program chooses these names. They are looked up below the folders only: elsewhere looking alone may do something, as where a
/// name of a file mounts another machine's.
pub fn find(said: &str, folders: &[&Path], own: Option<&Path>) -> Option<PathBuf> {
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
    let mut words = words.filter(|word| is_plain(word)).take(WORDS);
    words.find_map(|word| {
        let places = folders.iter().map(|folder| folder.join(word));
        let places = places.filter(|path| own != Some(path));
        let mut there =
            places.filter(|path| path.symlink_metadata().is_ok_and(|it| !it.is_symlink()));
        there.next()
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
                Some(here.join("data.csv")),
                "{said}"
            );
        }
        for said in [
            "data.csv is fine",
            "no such file: ../data.csv",
            "no such file: /etc/passwd",
            "no such file: link.txt",
            "no such file: other.csv",
        ] {
            assert_eq!(find(said, &[here], None), None, "{said}");
        }
        let said = "data.csv: line 1: other.csv: No such file or directory";
        let own = here.join("data.csv");
        assert_eq!(find(said, &[here], Some(&own)), None);
    }
}
