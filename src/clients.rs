//! Our entry in the configuration files of MCP clients: `hotcell install` writes it, `hotcell uninstall` removes it.
//!
//! A file belongs to its user. Everything in it but our entry stays as it is, byte for byte: the text is edited in place and never printed
//! anew. What an edit came to is read again and compared with what it should be, and a file that cannot be understood is left alone.

mod edit;
mod file;
mod json;
mod table;
mod toml;
mod yaml;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

pub use edit::Unclear;
pub use file::{ClientFile, FileError};
pub use table::{CLIENTS, Client};

/// The name of our entry.
const NAME: &str = "hotcell";

/// How a client gets to the server.
pub enum Reach {
    /// It starts this command.
    Program(Vec<String>),
    /// It finds one that runs already, and shows it a token.
    Address { url: String, bearer: String },
}

impl Reach {
    pub fn address(address: SocketAddr, token: &str) -> Self {
        Self::Address {
            url: format!("http://{address}/mcp"),
            bearer: format!("Bearer {token}"),
        }
    }

    /// What stands in an entry for a word in braces.
    fn value(&self, word: &str) -> Option<Value> {
        let found = match (self, word) {
            (Self::Program(command), "{command}") => json!(command.first()?),
            (Self::Program(command), "{args}") => json!(command.get(1..)?),
            (Self::Program(command), "{argv}") => json!(command),
            (Self::Address { url, .. }, "{url}") => json!(url),
            (Self::Address { bearer, .. }, "{bearer}") => json!(bearer),
            _ => return None,
        };
        Some(found)
    }
}

impl Client {
    pub fn named(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    /// The file to write to: the one that a variable of the client names; else the first that is there, else the first whose folder is,
    /// else the usual one.
    pub fn path(&self, own: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
        let is_named = |place: &str| place.starts_with('$') && !place.starts_with("$CONFIG/");
        let mut places = Vec::new();
        for place in self.files {
            let path = resolve(place, own).filter(|path| path.is_absolute());
            if is_named(place) && path.is_some() {
                return path;
            }
            places.extend(path);
        }
        let has_folder = |path: &&PathBuf| path.parent().is_some_and(Path::is_dir);
        let there = places.iter().find(|path| path.symlink_metadata().is_ok());
        let found = there.or_else(|| places.iter().find(has_folder));
        found.or(places.first()).cloned()
    }

    /// Our entry as this client wants it; none if it cannot be reached in this way.
    pub fn entry(&self, reach: &Reach) -> Option<Map<String, Value>> {
        let template = match reach {
            Reach::Program(_) => self.program,
            Reach::Address { .. } => self.address?,
        };
        let mut entry = members(template);
        entry.values_mut().for_each(|value| fill(value, reach));
        Some(entry)
    }

    /// The keys that an entry of ours may have, however the client gets to us.
    fn keys(&self) -> Vec<String> {
        let both = [Some(self.program), self.address].into_iter().flatten();
        both.flat_map(|template| members(template).into_iter().map(|(key, _)| key))
            .collect()
    }

    /// A file's text with our entry. Of an entry that is there already, what is not ours to say (`env`, `timeout`) stays.
    pub fn add(&self, text: &str, entry: &Map<String, Value>) -> Result<String, Unclear> {
        let edit = edit::Edit {
            table: self.key,
            name: NAME,
            entry,
            stale: self.keys(),
        };
        match self.format() {
            Format::Json => json::add(text, &edit),
            Format::Toml => toml::add(text, &edit),
            Format::Yaml => yaml::add(text, &edit),
        }
    }

    /// A file's text without our entry.
    pub fn remove(&self, text: &str) -> Result<String, Unclear> {
        match self.format() {
            Format::Json => json::remove(text, self.key, NAME),
            Format::Toml => toml::remove(text, self.key, NAME),
            Format::Yaml => yaml::remove(text, self.key, NAME),
        }
    }

    fn format(&self) -> Format {
        match self.files[0].rsplit('.').next() {
            Some("toml") => Format::Toml,
            Some("yaml") => Format::Yaml,
            _ => Format::Json,
        }
    }
}

enum Format {
    Json,
    Toml,
    Yaml,
}

/// A template of the table.
fn members(template: &str) -> Map<String, Value> {
    serde_json::from_str(template).unwrap_or_default()
}

fn fill(value: &mut Value, reach: &Reach) {
    match value {
        Value::String(word) => {
            if let Some(found) = reach.value(word) {
                *value = found;
            }
        }
        Value::Object(members) => members.values_mut().for_each(|it| fill(it, reach)),
        _ => {}
    }
}

/// `~` is the home, `$CONFIG` the folder of configuration, another `$NAME` a variable; none if that is not set.
fn resolve(place: &str, own: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| own(name).filter(|value| !value.is_empty());
    let (first, rest) = place.split_once('/').unwrap_or((place, ""));
    let folder = match first.strip_prefix('$') {
        Some("CONFIG") => match set("XDG_CONFIG_HOME") {
            Some(folder) => PathBuf::from(folder),
            None => Path::new(&set("HOME")?).join(".config"),
        },
        Some(name) => PathBuf::from(set(name)?),
        None => PathBuf::from(set("HOME")?),
    };
    Some(match rest {
        "" => folder,
        rest => folder.join(rest),
    })
}

#[cfg(test)]
mod tests;
