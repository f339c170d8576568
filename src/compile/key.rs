//! What a build depends on, as one name.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::plan::{Build, WarmUp};
use crate::request::FileSource;

/// The name of everything that a build depends on: hexadecimal, a safe file name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key(String);

impl Key {
    /// None if the build reads what we have not read: a folder of the host.
    pub fn of_build(build: &Build) -> Option<Self> {
        let mut hash = Hash::new("build", build);
        for file in build.files.iter().chain(&build.more_files) {
            hash.add(file.path.as_str());
            hash.add(file.mode.to_le_bytes());
            match &file.source {
                FileSource::Bytes(bytes) => hash.add(bytes),
                FileSource::Kept(kept) => hash.add(kept.read(0, usize::MAX).ok()?),
                FileSource::HostFile(path) => hash.add(fs::read(path).ok()?),
                FileSource::EmptyFolder => hash.add("a folder"),
                FileSource::HostFolder(_) => return None,
                FileSource::Link(to) => hash.add(to.as_os_str().as_encoded_bytes()),
            }
        }
        for (name, value) in &build.more_env {
            hash.add(name);
            hash.add(value);
        }
        for step in build.all_steps() {
            hash.list(step);
        }
        Some(hash.finish())
    }

    /// What a tool chain's own cache depends on.
    pub fn of_tools(build: &Build, warm_up: &WarmUp) -> Self {
        let mut hash = Hash::new("tools", build);
        hash.add(&warm_up.program);
        for step in &warm_up.steps {
            hash.list(step);
        }
        hash.finish()
    }

    #[cfg(test)]
    pub fn for_test(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

struct Hash(Sha256);

impl Hash {
    /// Begins with what all builds depend on: us, the tools and their environment.
    fn new(kind: &str, build: &Build) -> Self {
        let mut hash = Self(Sha256::new());
        hash.add(env!("CARGO_PKG_VERSION"));
        hash.add(kind);
        for tool in &build.tools {
            hash.add(identity(tool));
        }
        for (name, value) in &build.env {
            hash.add(name);
            hash.add(value);
        }
        hash
    }

    /// With its length, so that two fields never look like two others.
    fn add(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn list(&mut self, words: &[String]) {
        self.add((words.len() as u64).to_le_bytes());
        words.iter().for_each(|word| self.add(word));
    }

    fn finish(self) -> Key {
        let digest = self.0.finalize();
        Key(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Changes whenever the tool is replaced.
fn identity(tool: &Path) -> String {
    let found = fs::metadata(tool).ok();
    let facts = found.map(|it| (it.len(), it.ino(), it.mtime(), it.mtime_nsec()));
    format!("{} {facts:?}", tool.display())
}
