//! Other MCP servers, and functions of whoever uses this library, whose tools a program may call.
//!
//! A server runs on the host as its owner configured it, from when it is first needed until we end. A program has a
//! port of its own loopback (`bridge`): it says there which tool with what, and gets a value. SECURITY: it holds
//! no address, no credential and no connection to a server; what a server was started with is taken out of what it says.

mod approval;
mod backoff;
mod bridge;
mod call;
mod catalogue;
mod connection;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod http;
mod launch;
mod ledger;
mod lifecycle;
mod link;
mod nearest;
mod redact;
mod renewal;
mod result_value;
mod schema;
mod scrub;
mod search;
mod server;
mod signature;
mod sse;
mod storage;
mod tokens;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore};

use crate::language::Binding;
use crate::request::{FileSource, RunRequest};

use approval::Approved;
pub use approval::{Approver, Decision, Pause, Question};
pub use bridge::Bridge;
pub use call::{Arguments, CallError};
pub use catalogue::{Catalogue, counted};
pub use launch::{LAUNCHER, ServerStderr, launch};
pub use ledger::{Asking, Calls, Ledger, ToolCall};
pub use lifecycle::ServerState;
use redact::Pseudonyms;
pub use schema::misfit;
use search::Searcher;
pub use search::{Hit, MOST_HITS};
pub use server::UpstreamServer;
pub use signature::is_unseen;

/// Servers that are started at a time to learn their tools.
const AT_ONCE: usize = 4;
/// Characters that are read of what a tool says of itself. A model is shown fewer.
const LONGEST: usize = 20_000;

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

    /// Its name as programs can write it.
    pub fn spelled(&self) -> String {
        signature::spelled(&self.name)
    }

    /// How it is called as a tool of a server, with all of its parameters.
    pub fn signature(&self, server: &str) -> String {
        signature::call(server, self, usize::MAX)
    }

    /// About how many bytes it says of itself.
    fn said(&self) -> u64 {
        let texts = self.name.len() + self.description.len();
        texts as u64 + ledger::weight(&self.input) + ledger::weight(&self.output)
    }

    fn read(mut listed: Value) -> Option<Self> {
        Some(Self {
            name: listed["name"].as_str()?.to_owned(),
            description: signature::cut(
                listed["description"].as_str().unwrap_or_default(),
                LONGEST,
            ),
            input: listed["inputSchema"].take(),
            output: listed["outputSchema"].take(),
        })
    }
}

/// Functions of the program that uses this library, for programs in cells to call.
pub trait Functions: Send + Sync {
    fn tools(&self) -> Vec<Tool>;

    /// Further names that can be called and are not told.
    fn hidden(&self) -> &[&str] {
        &[]
    }

    /// Whether a program may call one of these; none: if it has the name that they are called by.
    fn is_named_in(&self, _code: &str) -> Option<bool> {
        None
    }

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
            [] => "Configure it under `[servers]` in config.toml (see `hotcell help servers`)."
                .to_owned(),
            known => format!("Choose one of: {}.", known.join(", ")),
        }
    }
}

/// A server as programs call it, and as its owner does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerName {
    pub alias: String,
    pub name: String,
    /// The types of its tools as far as they are known, for a program that asks for them.
    pub types: String,
}

/// All servers that are configured.
#[derive(Default)]
pub struct UpstreamServers {
    all: Vec<Arc<UpstreamServer>>,
    stderr: ServerStderr,
    /// Where hotcell keeps what it remembers, if it does.
    state: Option<PathBuf>,
    /// Told when the tools of one may have changed.
    news: Arc<Notify>,
    searcher: Arc<Searcher>,
    approved: Arc<Approved>,
    pseudonyms: Arc<Pseudonyms>,
}

impl UpstreamServers {
    pub fn all(&self) -> &[Arc<UpstreamServer>] {
        &self.all
    }

    /// As their owner calls them.
    pub fn names(&self) -> Vec<String> {
        let lasting = self.all.iter().filter(|it| it.is_lasting());
        lasting.map(|it| it.name.clone()).collect()
    }

    /// The modules that a program has of these servers, and no package's.
    pub fn modules(&self) -> Vec<String> {
        if !self.has_lasting() {
            return Vec::new();
        }
        let of = self.shown().map(|it| format!("mcp_{}", it.alias));
        let own = ["mcp", "user_tools"].map(str::to_owned);
        of.chain(own).collect()
    }

    /// Those that a request's program may call: what it asks for; else all, if it mentions one, or one of the words that make names at run
    /// time. A session's later calls may mention one too.
    pub fn for_request(
        &self,
        request: &RunRequest,
        binding: Option<&Binding>,
    ) -> Result<Vec<ServerName>, UnknownServer> {
        let at_run_time = binding.map_or(&[][..], |binding| &binding.dynamic);
        let code = String::from_utf8_lossy(request.code());
        let aliases = |servers: &[Arc<UpstreamServer>]| {
            let wants_types = binding.is_some_and(|it| it.imports_module(&code));
            let name = |it: &Arc<UpstreamServer>| ServerName {
                alias: it.alias.clone(),
                name: it.name.clone(),
                types: match wants_types {
                    true => signature::interface(&it.known()),
                    false => String::new(),
                },
            };
            servers.iter().map(name).collect()
        };
        if let Some(asked) = request.asked_servers() {
            let find = |asked: &String| {
                let found = self.find(asked).ok_or_else(|| UnknownServer {
                    asked: asked.clone(),
                    known: self.names(),
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
        let is_lasting = self.has_lasting();
        let mentions = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            let mut all = self.all.iter();
            let mut words = at_run_time.iter().map(String::as_str).chain(["mcp"]);
            all.any(|it| it.is_named_in(&text))
                || (is_lasting && words.any(|word| text.contains(word)))
        };
        let beside = |source: &FileSource| match source {
            FileSource::Bytes(bytes) => mentions(bytes),
            FileSource::EmptyFolder | FileSource::Link(_) => false,
            FileSource::Kept(_) | FileSource::HostFile(_) | FileSource::HostFolder(_) => true,
        };
        let is_named = mentions(request.code());
        let is_kept = request.session().is_some();
        let may_be_named = || {
            let (args, files) = (request.asked_args(), request.asked_files());
            is_kept
                || args.iter().any(|word| mentions(word.as_bytes()))
                || files.iter().any(|file| beside(&file.source))
        };
        let is_any_meant = is_named || (is_lasting && may_be_named());
        if !is_any_meant {
            return Ok(Vec::new());
        }
        let is_meant = |it: &UpstreamServer| is_kept || it.is_shown() || it.is_named_in(&code);
        let meant = self.all.iter().filter(|it| is_meant(it));
        Ok(aliases(&meant.cloned().collect::<Vec<_>>()))
    }

    fn find(&self, name: &str) -> Option<&Arc<UpstreamServer>> {
        let named = |it: &&Arc<UpstreamServer>| it.name == name || it.alias == name;
        self.all.iter().find(named)
    }

    /// What stands behind the port of a program that may call these.
    pub fn bridge(&self, aliases: &[String]) -> Arc<Bridge> {
        let found = aliases.iter().filter_map(|alias| self.find(alias)).cloned();
        let searcher = self.searcher.clone();
        let lasting = self.all.iter().filter(|it| it.is_lasting());
        let configured = lasting.map(|it| {
            let about = it.settings().and_then(|it| it.description.clone());
            (it.name.clone(), about.unwrap_or_default())
        });
        let configured = configured.collect();
        Arc::new(Bridge::new(found.collect(), configured, searcher))
    }

    /// Asks those for their tools whose tools are not known, a few at a time; [`changed`](Self::changed) tells of each that has answered.
    pub async fn discover(&self) {
        discover(&self.all).await;
    }

    /// Tells whoever waits that the tools of one may have changed.
    pub fn tell(&self) {
        self.news.notify_one();
    }

    /// Waits until the tools of one may have changed.
    pub async fn changed(&self) {
        self.news.notified().await;
    }
}

async fn discover(servers: &[Arc<UpstreamServer>]) {
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut asking = tokio::task::JoinSet::new();
    for server in servers {
        let (server, turns) = (server.clone(), turns.clone());
        asking.spawn(async move {
            let _turn = turns.acquire().await;
            // One that cannot be had is told of to who calls it.
            let _ = server.tools().await;
        });
    }
    while asking.join_next().await.is_some() {}
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
