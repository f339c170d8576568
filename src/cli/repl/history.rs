//! What was typed in earlier sessions, in a file that only its owner can read: one JSON string on a line.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::language::Surroundings;

/// Entries that are remembered.
const MOST: usize = 1000;
/// Bytes that are read.
const LARGEST: u64 = 4 << 20;

pub struct History {
    file: Option<File>,
    entries: Vec<String>,
}

/// The history of a language; without a place for it, one that is forgotten.
pub fn open(language: &str) -> History {
    let path = Surroundings::from_env()
        .state
        .map(|folder| folder.join(format!("repl-{language}.jsonl")));
    path.and_then(|path| History::at(&path)).unwrap_or(History {
        file: None,
        entries: Vec::new(),
    })
}

impl History {
    fn at(path: &PathBuf) -> Option<Self> {
        let folder = path.parent()?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .ok()?;
        let mut text = String::new();
        if let Ok(file) = File::open(path) {
            // One that is no text is no history.
            let _ = file.take(LARGEST).read_to_string(&mut text);
        }
        let lines: Vec<&str> = text.lines().collect();
        let newest = &lines[lines.len().saturating_sub(MOST)..];
        let entries = newest.iter().filter_map(|it| serde_json::from_str(it).ok());
        let entries = entries.collect();
        if lines.len() > 2 * MOST {
            shorten(path, newest);
        }
        let mut open = OpenOptions::new();
        let open = open.append(true).create(true).mode(0o600);
        let no_link = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        let file = open.custom_flags(no_link).open(path).ok();
        Some(Self { file, entries })
    }

    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Remembers an entry at once: the terminal may vanish any time.
    pub fn add(&mut self, text: &str) {
        if let (Some(file), Ok(line)) = (&mut self.file, serde_json::to_string(text)) {
            let _ = file.write_all(format!("{line}\n").as_bytes());
        }
    }
}

/// Leaves the newest entries in the file, or all of them if that cannot be.
fn shorten(path: &Path, newest: &[&str]) {
    let aside = path.with_extension("new");
    let mut open = OpenOptions::new();
    let file = open.write(true).create_new(true).mode(0o600).open(&aside);
    let text = newest.join("\n") + "\n";
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    if written.and_then(|()| fs::rename(&aside, path)).is_err() {
        let _ = fs::remove_file(&aside);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_was_typed_is_there_again_and_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/repl-x.jsonl");
        let mut history = History::at(&path).unwrap();
        assert!(history.entries().is_empty());
        history.add("def f():\n    return 'é'");
        history.add("f()");
        let again = History::at(&path).unwrap();
        assert_eq!(again.entries(), ["def f():\n    return 'é'", "f()"]);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let long = (0..2 * MOST + 5).map(|at| format!("\"{at}\"\n"));
        fs::write(&path, long.collect::<String>()).unwrap();
        let history = History::at(&path).unwrap();
        assert_eq!(history.entries().len(), MOST);
        assert_eq!(history.entries()[MOST - 1], (2 * MOST + 4).to_string());
        let left = fs::read_to_string(&path).unwrap();
        assert_eq!(left.lines().count(), MOST);
        fs::write(&path, [0xff, 0xfe, b'\n']).unwrap();
        assert!(History::at(&path).unwrap().entries().is_empty());
    }
}
