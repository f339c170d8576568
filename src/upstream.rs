//! Other MCP servers, and functions of whoever uses this library, whose tools a program may call.
//!
//! A server runs on the host as its owner configured it, from when it is first needed until we end. A program has a
//! port of its own loopback (`bridge`): it says there which tool with what, and gets a value. SECURITY: it holds
//! no address, no credential and no connection to a server; what a server was started with is taken out of what it says.

mod bridge;
mod call;
mod connection;
mod launch;
mod server;
mod signature;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::Notify;

use crate::config;
use crate::request::{FileSource, RunRequest};
use crate::secret::Hidden;

pub use bridge::Bridge;
pub use call::{Arguments, CallError};
pub use launch::{LAUNCHER, ServerStderr, launch};
use server::Kind;
pub use server::UpstreamServer;

/// What the description of a tool may hold of ours: characters, about four to a token.
const MOST_SIGNATURES: usize = 6000;
const MOST_NAMES: usize = 1000;

/// How a server is started.
#[derive(Debug, Clone)]
pub struct Settings {
    pub command: Vec<String>,
    pub folder: Option<PathBuf>,
    /// The whole environment of the server.
    pub env: BTreeMap<String, Hidden>,
    /// Variables that must not come back from it, beside those whose names say so.
    pub secret: Vec<String>,
    /// Those of them that are not set.
    pub unset: Vec<String>,
}

impl Settings {
    fn is_secret(&self, variable: &str) -> bool {
        let name = variable.to_ascii_uppercase();
        let words = ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH"];
        self.secret.iter().any(|it| it == variable) || words.iter().any(|it| name.contains(it))
    }
}

impl From<config::Server> for Settings {
    fn from(server: config::Server) -> Self {
        Self {
            command: server.command,
            folder: server.folder,
            env: server.env,
            secret: server.pass,
            unset: server.unset,
        }
    }
}

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// JSON Schema, of its arguments and of its value.
    pub input: Value,
    pub output: Value,
}

impl Tool {
    /// A tool with this schema of its arguments.
    pub fn new(name: &str, description: &str, input: Value) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            input,
            output: Value::Null,
        }
    }

    fn read(mut listed: Value) -> Option<Self> {
        Some(Self {
            name: listed["name"].as_str()?.to_owned(),
            description: listed["description"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            input: listed["inputSchema"].take(),
            output: listed["outputSchema"].take(),
        })
    }
}

/// Functions of the program that uses this library, for programs in cells to call.
pub trait Functions: Send + Sync {
    fn tools(&self) -> Vec<Tool>;

    /// What it came to, or why not. Dropped when the program that called has ended.
    fn call<'a>(&'a self, tool: &'a str, arguments: Map<String, Value>) -> Called<'a>;
}

pub type Called<'a> = Pin<Box<dyn Future<Output = Result<Value, String>> + Send + 'a>>;

/// A request names a server that there is none of.
#[derive(Debug, thiserror::Error)]
#[error("unknown server `{}`", asked.escape_debug())]
pub struct UnknownServer {
    pub asked: String,
    pub known: Vec<String>,
}

impl UnknownServer {
    pub fn hint(&self) -> String {
        match self.known.as_slice() {
            [] => "Configure it under `[servers]` in config.toml (see docs/servers.md).".to_owned(),
            known => format!("Choose one of: {}.", known.join(", ")),
        }
    }
}

/// All servers that are configured.
#[derive(Default)]
pub struct UpstreamServers {
    all: Vec<Arc<UpstreamServer>>,
    /// Told when the tools of one may have changed.
    news: Arc<Notify>,
}

impl UpstreamServers {
    pub fn new(
        processes: impl IntoIterator<Item = (String, Settings)>,
        functions: impl IntoIterator<Item = (String, Arc<dyn Functions>)>,
        stderr: ServerStderr,
    ) -> Self {
        let mut servers = Self::default();
        // Without an end otherwise, if one of them is this server.
        let nested = launch::is_upstream();
        for (name, settings) in processes.into_iter().filter(|_| !nested) {
            servers.add(name, Kind::Process(settings, stderr));
        }
        for (name, functions) in functions {
            servers.add(name, Kind::Functions(functions));
        }
        servers
    }

    fn add(&mut self, name: String, kind: Kind) {
        let mut alias = alias(&name);
        while self.all.iter().any(|other| other.alias == alias) {
            alias += "_2";
        }
        let server = UpstreamServer::new(name, alias, kind, self.news.clone());
        self.all.push(Arc::new(server));
    }

    pub fn all(&self) -> &[Arc<UpstreamServer>] {
        &self.all
    }

    /// Those that a request's program may call: what it asks for; else all, if it mentions one.
    pub fn for_request(&self, request: &RunRequest) -> Result<Vec<String>, UnknownServer> {
        let aliases =
            |servers: &[Arc<UpstreamServer>]| servers.iter().map(|it| it.alias.clone()).collect();
        if let Some(asked) = request.asked_servers() {
            let find = |asked: &String| {
                let found = self.find(asked).ok_or_else(|| UnknownServer {
                    asked: asked.clone(),
                    known: self.all.iter().map(|it| it.name.clone()).collect(),
                });
                found.cloned()
            };
            let found: Vec<_> = asked.iter().map(find).collect::<Result<_, _>>()?;
            return Ok(aliases(&found));
        }
        if self.all.is_empty() {
            return Ok(Vec::new());
        }
        // A program that says no name of theirs has none of their cost.
        let names = || self.all.iter().map(|it| it.alias.as_str()).chain(["mcp"]);
        let mentions = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            names().any(|name| text.contains(name))
        };
        let beside = |source: &FileSource| match source {
            FileSource::Bytes(bytes) => mentions(bytes),
            FileSource::EmptyFolder | FileSource::Link(_) => false,
            FileSource::HostFile(_) | FileSource::HostFolder(_) => true,
        };
        let files = request.asked_files();
        match mentions(request.code()) || files.iter().any(|file| beside(&file.source)) {
            true => Ok(aliases(&self.all)),
            false => Ok(Vec::new()),
        }
    }

    fn find(&self, name: &str) -> Option<&Arc<UpstreamServer>> {
        let named = |it: &&Arc<UpstreamServer>| it.name == name || it.alias == name;
        self.all.iter().find(named)
    }

    /// What stands behind the port of a program that may call these.
    pub fn bridge(&self, aliases: &[String]) -> Arc<Bridge> {
        let found = aliases.iter().filter_map(|alias| self.find(alias)).cloned();
        Arc::new(Bridge::new(found.collect()))
    }

    /// Starts all of them and asks for their tools, at once.
    pub async fn discover(&self) {
        let mut asking = tokio::task::JoinSet::new();
        for server in &self.all {
            let server = server.clone();
            asking.spawn(async move {
                // One that cannot be had is told of to who calls it.
                let _ = server.tools().await;
            });
        }
        while asking.join_next().await.is_some() {}
    }

    /// Waits until the tools of one may have changed.
    pub async fn changed(&self) {
        self.news.notified().await;
    }

    /// What a model is told: every tool that is known, or if those are too many, how many.
    pub fn catalogue(&self) -> String {
        let lines = self.all.iter().flat_map(|server| server.signatures());
        let lines: String = lines.map(|line| line + "\n").collect();
        if lines.len() <= MOST_SIGNATURES {
            return lines;
        }
        let mut counts: Vec<(usize, &str)> = self
            .all
            .iter()
            .map(|server| (server.known().len(), server.alias.as_str()))
            .collect();
        counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let mut names = String::new();
        for (at, (count, alias)) in counts.iter().enumerate() {
            if names.len() > MOST_NAMES {
                let _ = write!(names, "and {} more", counts.len() - at);
                break;
            }
            let _ = write!(names, "{alias}({count}) ");
        }
        format!(
            "{}\nprint(mcp.help(\"NAME\")) lists the tools of one.\n",
            names.trim_end()
        )
    }
}

/// A name as programs can write it: lower case, `_` for anything else, no digit first.
fn alias(name: &str) -> String {
    let mut alias = String::new();
    for letter in name.to_lowercase().chars() {
        match letter {
            'a'..='z' | '0'..='9' => alias.push(letter),
            _ if alias.ends_with('_') => {}
            _ => alias.push('_'),
        }
    }
    match alias.chars().next() {
        None | Some('0'..='9') => format!("_{alias}"),
        _ => alias,
    }
}

#[cfg(test)]
mod tests;
