//! The servers that other programs on this machine have configured, for an owner who allows it (`discover`).
//!
//! Only files of the user are read, none of a project: whoever wrote a repository does not decide what is started here.

mod entry;
mod files;
mod jsonc;
mod yaml;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::expand::Variables;
use super::server::{Reach, Server};
pub use files::{Places, Source, bridge_folder, sources};
pub use jsonc::to_json as plain_json;

/// Some programs keep their history in the same file.
const LARGEST: u64 = 64 << 20;
/// The name that our own entries have in the files of others.
const OURS: &str = "hotcell";
/// A server that calls the same servers, this one among them.
const BRIDGE: &str = "mcp-server-code-execution-mode";

/// What was found, and what could not be read.
#[derive(Debug, Default)]
pub struct Discovered {
    pub servers: Vec<(String, Server)>,
    pub complaints: Vec<String>,
}

/// Where to look, and with which variables.
pub struct Looking<'a> {
    pub own: &'a dyn Fn(&str) -> Option<String>,
    /// The program whose entries are our own.
    pub program: Option<PathBuf>,
    /// Whether our own entries are taken like others.
    pub with_ourselves: bool,
}

impl Looking<'_> {
    /// Reads all of them. A name that is `taken` already, by an entry that says something else, gets a number.
    pub fn discover(&self, places: Places, taken: &[(String, Server)]) -> Discovered {
        let mut found = Discovered {
            servers: taken.to_vec(),
            complaints: Vec::new(),
        };
        for source in sources(places, self.own) {
            match read(&source.path) {
                Ok(None) => {}
                Ok(Some(file)) => self.take(&source, &file, &mut found),
                Err(why) => {
                    let path = source.path.display();
                    found.complaints.push(format!("{path}: {why}"));
                }
            }
        }
        found.servers.drain(..taken.len());
        found
    }

    fn take(&self, source: &Source, file: &Value, found: &mut Discovered) {
        for table in source.tables(file, self.own) {
            for (name, value) in table {
                let Some(mut server) = self.one(source, name, value) else {
                    continue;
                };
                let of_all = || file["description"].as_str().map(str::to_owned);
                server.description = server.description.or_else(of_all);
                let same = |it: &(String, Server)| it.1.reach == server.reach;
                let is_working = !matches!(server.reach, Reach::Mistake(_));
                if is_working && found.servers.iter().any(same) {
                    continue;
                }
                let mut free = name.clone();
                while found.servers.iter().any(|it| it.0 == free) {
                    free += "_2";
                }
                found.servers.push((free, server));
            }
        }
    }

    /// One entry, unless it is switched off or our own.
    fn one(&self, source: &Source, name: &str, value: &Value) -> Option<Server> {
        let variables = Variables {
            own: self.own,
            bare: source.has_bare_variables,
        };
        let entry = match entry::read(value, source.url_is_sse) {
            Ok(entry) => entry?,
            Err(why) => return Some(self.mistaken(source, name, &why)),
        };
        let env_file = entry.env_file(variables);
        let server = match entry.resolve(&source.path, variables) {
            Ok(server) => Server { env_file, ..server },
            Err(why) => {
                let mistaken = self.mistaken(source, name, &why);
                return Some(Server {
                    env_file,
                    ..mistaken
                });
            }
        };
        let is_ours = match &server.reach {
            Reach::Program(program) => {
                let words = &program.command;
                let is_bridge = || words.iter().any(|word| word.contains(BRIDGE));
                name == OURS || is_bridge() || self.is_ours(&words[0])
            }
            Reach::Remote(_) | Reach::Mistake(_) => name == OURS,
        };
        (self.with_ourselves || !is_ours).then_some(server)
    }

    fn mistaken(&self, source: &Source, name: &str, why: &str) -> Server {
        let (path, name) = (source.path.display(), name.escape_debug());
        Server::mistaken(format!("{path}: `{name}`: {why}"), &source.path)
    }

    /// Whether a command starts this program, under whatever name.
    fn is_ours(&self, command: &str) -> bool {
        let file = Path::new(command);
        if file.file_name().is_some_and(|name| name == OURS) {
            return true;
        }
        let found = match command.contains('/') {
            true => file.canonicalize().ok(),
            false => {
                let path = (self.own)("PATH").unwrap_or_default();
                let mut folders = path.split(':').map(Path::new);
                folders.find_map(|folder| folder.join(file).canonicalize().ok())
            }
        };
        found.is_some() && found == self.program
    }
}

/// A file as JSON, in whichever way it is written; none if there is none.
fn read(path: &Path) -> Result<Option<Value>, String> {
    let Ok(file) = File::open(path) else {
        return Ok(None);
    };
    let mut text = String::new();
    let length = file.take(LARGEST + 1).read_to_string(&mut text);
    let length = length.map_err(|error| error.to_string())?;
    if length as u64 > LARGEST {
        return Err("the file is too large".to_owned());
    }
    if text.trim().is_empty() {
        return Ok(None);
    }
    let value = match path.extension().and_then(|it| it.to_str()) {
        Some("toml") => toml::from_str(&text).map_err(|error| error.message().to_owned()),
        Some("yaml") => yaml::section(&text, "extensions"),
        _ => serde_json::from_str(&jsonc::to_json(&text)).map_err(|error| error.to_string()),
    };
    value.map(Some)
}

/// The members of an object; none if it is none.
fn members(value: &Value) -> Option<&Map<String, Value>> {
    value.as_object().filter(|members| !members.is_empty())
}

#[cfg(test)]
mod tests;
