//! What is remembered of servers, in files of the state folder: their tools as they were last told, which are offered until
//! the server has answered; and the tokens of logins.
//!
//! SECURITY: only their owner can read the files. A list of tools is not trusted for anything but words: a call is made with the tools that the server itself tells.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Tool;
use super::tokens::Tokens;
use crate::config::{Reach, Server};
use crate::random::random_name;

/// The folder, in hotcell's own of what it remembers.
const FOLDER: &str = "servers";
/// After this time a server is asked again, even if nobody calls it.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);
/// A file that was not written for so long is of a server that is no more.
const FORGOTTEN: Duration = Duration::from_secs(90 * 24 * 60 * 60);
const LARGEST: u64 = 32 << 20;

/// What is remembered of one server.
#[derive(Debug, Clone)]
pub struct Memory {
    pub tools: StoredTools,
    /// Of a server at an address.
    pub tokens: Option<Tokens>,
}

/// Where the tools of one server are stored.
#[derive(Debug, Clone)]
pub struct StoredTools(PathBuf);

impl Memory {
    /// For a server of this name, as long as it is reached in the same way.
    pub fn of(state: &Path, name: &str, server: &Server) -> Option<Self> {
        let folder = state.join(FOLDER);
        let mut words = vec![name.to_owned()];
        let tokens = match &server.reach {
            Reach::Mistake(_) => return None,
            Reach::Program(program) => {
                words.extend(program.command.iter().cloned());
                let folder = program.folder.iter();
                words.extend(folder.map(|it| it.to_string_lossy().into_owned()));
                None
            }
            Reach::Remote(remote) => {
                words.push(remote.url.to_string());
                let file = format!("{}.token", hash(&[remote.url.to_string()]));
                Some(Tokens::in_file(folder.join(file)))
            }
        };
        let tools = StoredTools(folder.join(format!("{}.json", hash(&words))));
        Some(Self { tools, tokens })
    }
}

fn hash(words: &[String]) -> String {
    let mut hash = Sha256::new();
    for word in words {
        hash.update(word.len().to_le_bytes());
        hash.update(word);
    }
    let bytes = hash.finalize();
    let bytes = bytes.iter().take(16);
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

impl StoredTools {
    /// Whether they were told not long ago.
    pub fn is_fresh(&self) -> bool {
        let written = fs::symlink_metadata(&self.0).and_then(|found| found.modified());
        written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < FRESH))
    }

    pub fn read(&self) -> Option<Vec<Tool>> {
        let listed: Value = serde_json::from_str(&read(&self.0)?).ok()?;
        let listed = listed["tools"].as_array()?.clone();
        Some(listed.into_iter().filter_map(Tool::read).collect())
    }

    /// Keeps them, or not if that cannot be.
    pub fn write(&self, tools: &[Tool]) {
        if let Err(error) = self.try_write(tools) {
            tracing::warn!(%error, "the tools of a server are not kept");
        }
    }

    fn try_write(&self, tools: &[Tool]) -> io::Result<()> {
        let list: Vec<Value> = tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "inputSchema": tool.input,
                    "outputSchema": tool.output,
                })
            })
            .collect();
        let text = json!({ "tools": list }).to_string();
        if text.len() as u64 > LARGEST {
            return Ok(());
        }
        write(&self.0, &text)?;
        self.0.parent().map(forget);
        Ok(())
    }
}

/// A file of ours; none if there is none that can be read.
pub fn read(path: &Path) -> Option<String> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(flags).open(path).ok()?;
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Writes a file for its owner alone, whole or not at all: others may read or write it at the same time.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let Some(folder) = path.parent() else {
        return Ok(());
    };
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)?;
    let new = folder.join(format!(".{}", random_name()));
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(&new);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    let done = written.and_then(|()| fs::rename(&new, path));
    if done.is_err() {
        let _ = fs::remove_file(&new);
    }
    done
}

/// Removes what servers that are no more have left.
fn forget(folder: &Path) {
    let is_old = |at: SystemTime| at.elapsed().is_ok_and(|age| age > FORGOTTEN);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let written = entry.metadata().and_then(|found| found.modified());
        let is_list = entry.path().extension().is_some_and(|it| it == "json");
        if is_list && written.is_ok_and(is_old) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
