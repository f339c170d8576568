//! Finding tools by what they do: the same for a model and for programs.

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::nearest::find;
use super::server::UpstreamServer;
use super::signature::{self, one_line};
use super::{Tool, UpstreamServers};
use crate::search::{Document, Index};

/// What one answer shows at most.
pub const MOST_HITS: usize = 8;
const MOST_NAMES: usize = 100;
/// Characters that are said of one tool in whole, and of one parameter.
const LONGEST: usize = 8000;
const LONGEST_PARAMETER: usize = 300;

/// A tool that was found.
#[derive(Clone)]
pub struct Hit {
    pub server: Arc<UpstreamServer>,
    pub tool: Tool,
    /// Servers that have another tool of this name, as programs write them.
    pub also: Vec<String>,
}

impl Hit {
    /// How it is called, in a line.
    pub fn signature(&self) -> String {
        signature::line(&self.server.alias, &self.tool)
    }
}

/// An index of tools, made when it is first asked and again when the tools are others.
#[derive(Default)]
pub struct Searcher(Mutex<Option<Indexed>>);

#[derive(Clone)]
struct Indexed {
    of: Vec<Arc<Vec<Tool>>>,
    index: Arc<Index>,
}

impl UpstreamServers {
    /// The tools that fit a question best. Waits for nothing: it looks at what is known of them.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        self.searcher.search(self.all(), query, limit).0
    }

    /// The answer to a question in words: signatures; of a tool's name all about it, of a server's its tools, of nothing the servers.
    pub fn answer(&self, query: &str, limit: usize) -> String {
        self.searcher.answer(self.all(), query, limit)
    }
}

impl Searcher {
    /// What fits best of these servers' tools, and how many more do.
    pub fn search(
        &self,
        servers: &[Arc<UpstreamServer>],
        query: &str,
        limit: usize,
    ) -> (Vec<Hit>, usize) {
        let known: Vec<_> = servers.iter().map(|server| server.known()).collect();
        let index = self.index(servers, &known);
        let all: Vec<(&Arc<UpstreamServer>, &Tool)> = servers
            .iter()
            .zip(&known)
            .flat_map(|(server, tools)| tools.iter().map(move |tool| (server, tool)))
            .collect();
        let found = index.search(query, limit);
        let hits = found.best.iter().filter_map(|hit| {
            let (server, tool) = all.get(hit.at)?;
            let others = hit.also.iter().filter_map(|at| all.get(*at));
            Some(Hit {
                server: Arc::clone(server),
                tool: Tool::clone(tool),
                also: others.map(|(server, _)| server.alias.clone()).collect(),
            })
        });
        (hits.collect(), found.more)
    }

    pub fn answer(&self, servers: &[Arc<UpstreamServer>], query: &str, limit: usize) -> String {
        let query = query.trim();
        if query.is_empty() {
            return list_servers(servers);
        }
        if let Some(text) = exactly(servers, query) {
            return text;
        }
        let (hits, more) = self.search(servers, query, limit.clamp(1, MOST_HITS));
        if hits.is_empty() {
            let listed = list_servers(servers);
            return format!("Nothing fits. Ask for one step in other words, or see:\n{listed}");
        }
        let mut text = String::new();
        for hit in &hits {
            text += &hit.signature();
            if !hit.also.is_empty() {
                let _ = write!(text, " (also: {})", hit.also.join(", "));
            }
            text.push('\n');
        }
        if more > 0 {
            let _ = writeln!(text, "{more} more fit less well.");
        }
        text
    }

    fn index(&self, servers: &[Arc<UpstreamServer>], known: &[Arc<Vec<Tool>>]) -> Arc<Index> {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |before: &Indexed| {
            before.of.len() == known.len()
                && before.of.iter().zip(known).all(|(a, b)| Arc::ptr_eq(a, b))
        };
        if let Some(before) = cached.as_ref().filter(|before| is_same(before)) {
            return before.index.clone();
        }
        let tools = servers.iter().zip(known).flat_map(|(server, tools)| {
            let name = server.name.as_str();
            tools.iter().map(move |tool| (name, tool))
        });
        let tools: Vec<(&str, &Tool, Vec<&str>)> = tools
            .map(|(server, tool)| (server, tool, parameters(tool)))
            .collect();
        let documents = tools.iter().map(|(server, tool, parameters)| Document {
            server,
            name: &tool.name,
            description: &tool.description,
            parameters,
        });
        let index = Arc::new(Index::new(documents));
        *cached = Some(Indexed {
            of: known.to_vec(),
            index: index.clone(),
        });
        index
    }
}

fn parameters(tool: &Tool) -> Vec<&str> {
    let properties = tool.input["properties"].as_object();
    let names = properties.into_iter().flat_map(|all| all.keys());
    names.map(String::as_str).collect()
}

/// All about what a question names exactly: `server.tool`, or `server`.
fn exactly(servers: &[Arc<UpstreamServer>], query: &str) -> Option<String> {
    let of = |name: &str| {
        let named = |it: &&Arc<UpstreamServer>| it.alias == name || it.name == name;
        servers.iter().find(named)
    };
    if let Some(server) = of(query) {
        return Some(list_tools(server));
    }
    // A server's own name may have dots.
    query.match_indices('.').find_map(|(at, _)| {
        let server = of(&query[..at])?;
        let known = server.known();
        let tool = find(&known, &query[at + 1..]).ok()?;
        Some(documentation(&server.alias, tool))
    })
}

fn list_servers(servers: &[Arc<UpstreamServer>]) -> String {
    let count = |server: &Arc<UpstreamServer>| match server.known().len() {
        1 => format!("{}: 1 tool\n", server.alias),
        count => format!("{}: {count} tools\n", server.alias),
    };
    let shown = servers.iter().filter(|server| server.is_shown());
    shown.take(MOST_NAMES * 5).map(count).collect()
}

fn list_tools(server: &UpstreamServer) -> String {
    let known = server.known();
    let names = known
        .iter()
        .take(MOST_NAMES)
        .map(|tool| signature::spelled(&tool.name));
    let mut text = format!("{}: {}", server.alias, names.collect::<Vec<_>>().join(", "));
    if let Some(more) = known.len().checked_sub(MOST_NAMES).filter(|more| *more > 0) {
        let _ = write!(text, " and {more} more");
    }
    text + "\n"
}

/// Everything that its server says of a tool, and how it is called.
fn documentation(server: &str, tool: &Tool) -> String {
    let mut text = signature::whole(server, tool);
    let properties = tool.input["properties"].as_object();
    for (name, schema) in properties.into_iter().flatten() {
        let about = schema["description"].as_str().map(one_line);
        let usual = schema.get("default").filter(|it| !it.is_null());
        let usual = usual.map(|it| format!("default {}", one_line(&it.to_string())));
        let said: Vec<String> = about.into_iter().chain(usual).collect();
        if !said.is_empty() {
            let said = signature::cut(&said.join("; "), LONGEST_PARAMETER);
            let _ = write!(text, "\n  {}: {said}", one_line(name));
        }
    }
    let text = signature::cut(&text, LONGEST);
    format!("{text}\nExample: {}\n", example(server, tool))
}

/// A call in Python with what is required.
fn example(server: &str, tool: &Tool) -> String {
    let required = tool.input["required"].as_array();
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    let argument = |name: &str| {
        let schema = &tool.input["properties"][name];
        let value = match (schema["enum"].get(0), schema["type"].as_str()) {
            (Some(first), _) => one_line(&first.to_string()),
            (None, Some("integer" | "number")) => "1".to_owned(),
            (None, Some("boolean")) => "True".to_owned(),
            (None, Some("array")) => "[]".to_owned(),
            (None, Some("object")) => "{}".to_owned(),
            _ => "\"…\"".to_owned(),
        };
        format!("{}={value}", one_line(name))
    };
    let arguments: Vec<String> = required.map(argument).collect();
    let (name, arguments) = (signature::spelled(&tool.name), arguments.join(", "));
    signature::cut(&format!("{server}.{name}({arguments})"), LONGEST_PARAMETER)
}
