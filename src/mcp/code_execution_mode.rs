//! `--as code-execution-mode`: the tool `run_python` of mcp-server-code-execution-mode, on our service.
//!
//! Its names, parameters, variables and texts are that server's, so that a client's configuration needs one changed line. Where it was
//! wrong (lines lost, failed tools taken for good ones, calls one after the other) ours is right.

mod payload;
mod settings;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::context::Context;
use super::message::Fault;
use super::objects::{Answer, Arguments, Boxed, Resource, Tool, runs_code};
use super::run_tool::{Link, Params, render_as, run, upstream_tools};
use crate::caller::Caller;
use crate::error_kind::ErrorKind;
use crate::hint::{Shown, Surface};
use crate::output::RunOutput;
use crate::request::Showing;
use crate::service::{Ran, Service};
use crate::upstream::UpstreamServer;

use payload::Payload;
pub use settings::{Settings, container_engine};

/// The server's name in that mode.
pub const NAME: &str = "mcp-server-code-execution-mode";
/// Its tool takes a program, servers and a time limit.
const SURFACE: Surface = Surface::Compat(Shown {
    packages: false,
    timeout: true,
    deno: false,
});
const SCHEME: &str = "resource://";
const ADDRESS: &str = "resource://mcp-server-code-execution-mode/capabilities";

/// The server of what programs have saved (`publish::saved`).
const SAVED: &str = "saved";
/// How much of a name that nobody knows is said again, in characters.
const LONGEST_NAME: usize = 128;
/// Names by which a program has the helpers.
const HELPER_NAMES: [&str; 2] = ["runtime", "mcp"];
/// How a program finds one of many.
const FINDING: &str = "Find them with `await runtime.search_tool_docs(\"words\")`.";

/// What a model is told of the helpers, in the tool's description and as a resource.
const HELPERS: &str = "\
Helpers, predefined as `runtime` (also `import mcp.runtime as runtime`):
- runtime.discovered_servers(detailed=False), await runtime.list_servers(): which servers there are
- await runtime.search_tool_docs(\"words\", limit=5, detail=\"summary\"|\"full\"): tools of all of them
- await runtime.query_tool_docs(server, tool=None, detail=\"full\"): one server's; list_tools_sync(server), describe_server(server)
- await runtime.call_tool(server, tool, {...}): a call, and its whole result
- await mcp_SERVER.TOOL(name=value), mcp_servers[\"name\"], `from mcp.servers.SERVER import TOOL`: the same; a tool that fails raises MCPError
- SERVER.TOOL(name=value): a call, and its value";

/// The tool.
pub struct CodeExecutionMode {
    pub service: Arc<Service>,
    pub settings: Settings,
}

impl Tool for CodeExecutionMode {
    fn listing(&self) -> Value {
        let settings = &self.settings;
        let mut description = format!(
            "Run Python in a fresh sandbox without network, where the tools of other MCP servers are functions. Top-level await works; print what you want to see.\n{HELPERS}"
        );
        if let Some(tools) = upstream_tools(&self.service, FINDING) {
            description += &format!("\n\n{tools}");
        }
        json!({
            "name": "run_python",
            "description": description,
            "inputSchema": {
                "type": "object",
                "properties": {
                    "code": { "type": "string", "description": "Python source code" },
                    "servers": {
                        "type": "array",
                        "items": { "type": "string" },
                        "description": "Servers whose tools the code may call; default: all",
                    },
                    "timeout": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": settings.most_seconds,
                        "default": settings.seconds,
                        "description": "Seconds",
                    },
                },
                "required": ["code"],
            },
            "annotations": runs_code("Run Python", true),
        })
    }

    fn answer_for_unknown(&self, name: &str) -> Option<Answer> {
        let name: String = name.chars().take(LONGEST_NAME).collect();
        let message = format!("Unknown tool: {name}");
        Some(self.complete(Payload::refused(&message)))
    }

    fn prepare(&self, caller: &Caller) {
        self.service.welcome(caller);
    }

    fn call<'a>(
        &'a self,
        arguments: Arguments,
        context: &'a Arc<Context>,
    ) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let asked = match Asked::read(arguments, &self.settings) {
                Ok(asked) => asked,
                Err(message) => return Ok(self.complete(Payload::invalid(message))),
            };
            let known = self.service.server_names();
            let unknown = asked.servers.iter().find(|name| !known.contains(name));
            if let Some(name) = unknown {
                let message = format!("Unknown MCP server: {name}");
                return Ok(self.complete(Payload::refused(&message)));
            }
            let (seconds, servers) = (asked.seconds, asked.servers.clone());
            let ran = match self.params(asked, known, context) {
                Ok(params) => run(&self.service, params, context).await,
                Err((message, hint)) => Ran::refused(ErrorKind::InvalidRequest, message, hint),
            };
            let mut payload = None;
            let say = |output: &RunOutput, _: &[Link]| {
                let made = Payload::of(output, servers, seconds);
                let text = self.text(&made);
                payload = Some(made);
                text
            };
            let budget = self.service.settings().budget;
            let mut result = render_as(ran, budget, SURFACE, say);
            if let Some(payload) = payload {
                result.insert("isError".to_owned(), (!payload.is_success()).into());
                result.insert("structuredContent".to_owned(), payload.compact().into());
            }
            Ok(Answer::Complete(result))
        })
    }
}

impl CodeExecutionMode {
    /// As our own tool takes it. What earlier programs have saved are names of this one, whatever servers it may call.
    fn params(
        &self,
        asked: Asked,
        known: Vec<String>,
        context: &Context,
    ) -> Result<Params, (String, Option<String>)> {
        let saved = self.service.functions(SAVED);
        let tools = saved.as_ref().map(|saved| saved.known());
        let names = tools.iter().flat_map(|tools| tools.iter());
        let names = names.map(|tool| tool.name.clone());
        let names: Vec<String> = names.filter(|name| asked.code.contains(name)).collect();
        // Without any server there would be no helpers either.
        let asks = || known.is_empty() && HELPER_NAMES.iter().any(|it| asked.code.contains(it));
        let is_meant = |saved: &Arc<UpstreamServer>| {
            !names.is_empty() || asks() || saved.is_named_in(&asked.code)
        };
        let is_meant = saved.as_ref().is_some_and(is_meant);
        let mut arguments = asked.arguments(&self.settings, known);
        if let Some(Value::Array(servers)) = arguments.get_mut("servers").filter(|_| is_meant)
            && !servers.iter().any(|it| it == SAVED)
        {
            servers.push(SAVED.into());
        }
        let params = Params::read(arguments, self.service.outputs(&context.caller));
        let params = params.map_err(|bad| (bad.message, bad.hint))?;
        let mut request = params.request.showing(Showing::All);
        if !names.is_empty() {
            let variable = ("MCP_USER_TOOLS".to_owned(), names.join(" "));
            let set = request.env([variable]);
            request = set.map_err(|error| (error.to_string(), None))?;
        }
        Ok(Params { request, ..params })
    }

    fn text(&self, payload: &Payload) -> String {
        match self.settings.is_toon {
            true => payload.toon(),
            false => payload.text(),
        }
    }

    fn complete(&self, payload: Payload) -> Answer {
        Answer::Complete(Map::from_iter([
            (
                "content".to_owned(),
                json!([{ "type": "text", "text": self.text(&payload) }]),
            ),
            ("structuredContent".to_owned(), payload.compact().into()),
            ("isError".to_owned(), true.into()),
        ]))
    }
}

/// The arguments, checked in that server's words.
struct Asked {
    code: String,
    servers: Vec<String>,
    seconds: u64,
}

impl Asked {
    fn read(mut arguments: Arguments, settings: &Settings) -> Result<Self, &'static str> {
        let mut take = |name| arguments.remove(name).filter(|value| !value.is_null());
        let code = match take("code") {
            Some(Value::String(code)) if !code.trim().is_empty() => code,
            _ => return Err("Missing 'code' argument"),
        };
        let mut servers: Vec<String> = Vec::new();
        match take("servers") {
            None => {}
            Some(Value::Array(names)) => {
                let names = names.into_iter().map(|name| match name {
                    Value::String(name) => name,
                    other => other.to_string(),
                });
                for name in names {
                    if !servers.contains(&name) {
                        servers.push(name);
                    }
                }
            }
            Some(_) => return Err("'servers' must be a list"),
        }
        let seconds = match take("timeout") {
            None => settings.seconds,
            Some(value) => {
                let text = value.as_str().and_then(|text| text.trim().parse().ok());
                let number = value.as_i64().or(text);
                let number = number.ok_or("'timeout' must be an integer")?;
                u64::try_from(number).unwrap_or(1)
            }
        };
        Ok(Self {
            code,
            servers,
            seconds: seconds.clamp(1, settings.most_seconds),
        })
    }

    /// The arguments of our own tool: without servers it may call all of them.
    fn arguments(self, settings: &Settings, known: Vec<String>) -> Arguments {
        let servers = match self.servers.as_slice() {
            [] => known,
            _ => self.servers,
        };
        let mut arguments = Map::from_iter([
            ("code".to_owned(), self.code.into()),
            ("language".to_owned(), "python".into()),
            ("servers".to_owned(), servers.into()),
            ("timeout".to_owned(), self.seconds.into()),
        ]);
        arguments.extend(settings.limits.clone());
        arguments
    }
}

/// The manual as a resource.
pub struct Capabilities;

impl Resource for Capabilities {
    fn listing(&self) -> Value {
        json!({
            "uri": ADDRESS,
            "name": "code-execution-capabilities",
            "title": "Code execution capabilities",
            "description": "What code in run_python can do",
            "mimeType": "text/markdown",
        })
    }

    /// All that could be one of that server's, so that an unknown one is refused in its words.
    fn holds(&self, uri: &str) -> bool {
        uri.starts_with(SCHEME)
    }

    fn read<'a>(&'a self, uri: &'a str, _: &'a Context) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            if uri != ADDRESS {
                let uri: String = uri.chars().take(400).collect();
                return Err(Fault::invalid_params(format!("Unknown resource: {uri}")));
            }
            let text = format!(
                "# Code execution\n\n`run_python` runs Python in a fresh sandbox: no network, no files of the host, nothing kept between calls.\n\n{HELPERS}\n"
            );
            let contents = json!([{ "uri": uri, "mimeType": "text/markdown", "text": text }]);
            Ok(Answer::Complete(Map::from_iter([(
                "contents".to_owned(),
                contents,
            )])))
        })
    }
}
