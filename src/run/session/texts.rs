//! The texts of a session's workspace as its last call left them, to say what the next one changes in them.

use std::collections::HashMap;
use std::sync::Arc;

use super::line_diff::line_diff;
use crate::cell::{ChangedFile, Changes, Version};
use crate::request::CellPath;

/// A longer text is not remembered.
const LONGEST_TEXT: usize = 64 << 10;
/// All that are remembered of one session.
const MOST_BYTES: usize = 1 << 20;
/// Files of one answer that are shown with what is different in them.
const MOST_DIFFS: usize = 8;
/// Files that are told as different from before.
const MOST_FILES: usize = 100;

#[derive(Debug, Clone, Default)]
pub struct Texts {
    by_path: HashMap<CellPath, Arc<str>>,
    bytes: usize,
}

/// A file that is not as it was.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    pub path: CellPath,
    pub change: Change,
    /// Of a text that is known from before and now.
    pub diff: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    New,
    Changed,
    Deleted,
}

impl Texts {
    /// Says of each changed text what is different in it, and remembers it for the next time.
    pub fn compare(&mut self, changes: &mut Changes) {
        let mut diffs = 0;
        for file in &mut changes.files {
            let before = self.forget(&file.path);
            let Some(now) = text(file) else {
                continue;
            };
            if let Some(before) = before.filter(|_| diffs < MOST_DIFFS) {
                file.diff = Some(line_diff(&before, &now)).filter(|diff| !diff.is_empty());
                diffs += 1;
            }
            if self.bytes + now.len() <= MOST_BYTES {
                self.bytes += now.len();
                self.by_path.insert(file.path.clone(), now);
            }
        }
        for path in &changes.deleted {
            self.forget(path);
        }
    }

    pub fn forget(&mut self, path: &CellPath) -> Option<Arc<str>> {
        let text = self.by_path.remove(path)?;
        self.bytes -= text.len();
        Some(text)
    }
}

/// A short text without anything that is none.
fn text(file: &ChangedFile) -> Option<Arc<str>> {
    let content = &file.content.as_ref()?.bytes;
    if content.len() > LONGEST_TEXT as u64 {
        return None;
    }
    let text = String::from_utf8(content.read(0, LONGEST_TEXT).ok()?).ok()?;
    (!text.contains('\0')).then(|| text.into())
}

/// What is known of the files of a workspace at one time.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    versions: HashMap<CellPath, Version>,
    texts: Texts,
}

impl Snapshot {
    pub fn new(versions: HashMap<CellPath, Version>, texts: Texts) -> Self {
        Self { versions, texts }
    }

    /// What is different now, by name.
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        let (old, new) = (&self.versions, &now.versions);
        let changed = new
            .iter()
            .filter_map(|(path, version)| match old.get(path) {
                None => Some((path, Change::New)),
                Some(known) if known != version => Some((path, Change::Changed)),
                Some(_) => None,
            });
        let deleted = old.keys().filter(|path| !new.contains_key(*path));
        let all = changed.chain(deleted.map(|path| (path, Change::Deleted)));
        let mut all: Vec<(&CellPath, Change)> = all.collect();
        all.sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
        all.truncate(MOST_FILES);
        let mut diffs = 0;
        let difference = |(path, change): (&CellPath, Change)| {
            let text = |of: &Self| of.texts.by_path.get(path).cloned();
            let both = text(self).zip(text(now)).filter(|_| diffs < MOST_DIFFS);
            let diff = both.map(|(old, new)| {
                diffs += 1;
                line_diff(&old, &new)
            });
            Difference {
                path: path.clone(),
                change,
                diff: diff.filter(|diff| !diff.is_empty()),
            }
        };
        all.into_iter().map(difference).collect()
    }
}
