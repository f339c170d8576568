//! What runtimes answered when they were asked something, in a file. It may be lost or broken at any time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Runtime, Surroundings, cache};

/// The file, as one runtime sees it.
pub struct Answers {
    file: Option<PathBuf>,
    known: BTreeMap<String, String>,
    /// The program, and when it was changed.
    runtime: [String; 2],
}

impl Answers {
    pub fn load(runtime: &Runtime, around: &Surroundings) -> Self {
        let folder = around.cache.as_ref();
        let file = folder.map(|folder| folder.join("answers.json"));
        let bytes = file.as_deref().and_then(cache::read_own);
        let known = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let modified = cache::modified(&runtime.path);
        Self {
            file,
            known: known.unwrap_or_default(),
            runtime: [runtime.path.display().to_string(), format!("{modified:?}")],
        }
    }

    pub fn find(&self, question: &[String]) -> Option<String> {
        self.known.get(&self.key(question)).cloned()
    }

    /// In place of what it answered before.
    pub fn keep(&mut self, question: &[String], answer: &str) {
        let own = format!("{} ", self.runtime[0]);
        self.known.retain(|other, _| !other.starts_with(&own));
        self.known.insert(self.key(question), answer.to_owned());
        if let (Some(file), Ok(bytes)) = (&self.file, serde_json::to_vec(&self.known)) {
            cache::write_own(file, &bytes);
        }
    }

    fn key(&self, question: &[String]) -> String {
        format!("{} {} {question:?}", self.runtime[0], self.runtime[1])
    }
}
