//! The tool bridge: programs call tools over HTTP, on a port of their own loopback.
//!
//! A question is a `POST` of JSON: by default a call, `{"server", "tool", "arguments"}`; `ask` says what else (see [`Question`]). The
//! answer is one of `{"value"}`, `{"text"}`, `{"parts"}`, `{"result"}` and `{"error"}`: a program's script makes a value of it. SECURITY:
//! everything that comes is untrusted: bounded, then parsed; and the servers that a run was not given are not here.

mod command;
mod facts;
mod search;
mod stubs;

use std::pin::Pin;
use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::nearest::nearest_first;
use super::result_value::{self, Refused, ResultValue};
use super::search::Searcher;
use super::server::UpstreamServer;
use super::signature::{cut, one_line};
use super::{Arguments, CallError};
use crate::loopback::{Body, Http, full};

/// Calls of one run at a time, and the KiB of their arguments; more wait.
const CALLS: usize = 32;
const ROOM: u32 = 32 << 10;
/// Characters of why a call has no value.
const LONGEST_ERROR: usize = 2000;

pub struct Bridge {
    servers: Vec<Arc<UpstreamServer>>,
    /// All that are configured: names, and what their owner says of them. A program may know of others, and not call them.
    configured: Vec<(String, String)>,
    searcher: Arc<Searcher>,
    calls: Semaphore,
    room: Semaphore,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Asked {
    ask: Question,
    server: String,
    tool: String,
    arguments: Option<Arguments>,
    /// What else it is about: words, a name, an address.
    about: String,
    limit: usize,
    /// What was typed after `mcp`, what came on its standard input, and how the files that it makes begin.
    words: Vec<String>,
    input: String,
    files: String,
}

/// What is asked.
#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Question {
    /// The value that a tool gives.
    #[default]
    Call,
    /// The whole result; one that says that it failed is an error.
    Whole,
    /// The whole result, whatever it says.
    Raw,
    /// Text about a tool, a server, or all.
    Help,
    /// Which servers there are.
    Servers,
    /// All that is known of a server's tools.
    Tools,
    /// The same as the server lists them.
    Listed,
    Search,
    Resources,
    Read,
    Prompts,
    Prompt,
    PythonStubs,
    TypescriptStubs,
    /// What was typed after `mcp`.
    Command,
}

impl Http for Bridge {
    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Pin<Box<dyn Future<Output = Response<Body>> + Send>> {
        Box::pin(self.respond(request))
    }
}

impl Bridge {
    pub fn new(
        servers: Vec<Arc<UpstreamServer>>,
        configured: Vec<(String, String)>,
        searcher: Arc<Searcher>,
    ) -> Self {
        Self {
            servers,
            configured,
            searcher,
            calls: Semaphore::new(CALLS),
            room: Semaphore::new(ROOM as usize),
        }
    }

    async fn respond(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let is_call = request.method() == Method::POST;
        let answer = match self.take(request).await {
            Ok(answer) => answer,
            Err(why) => said(json!({ "error": { "kind": "arguments", "message": why } })),
        };
        let mut response = Response::new(full(answer));
        if !is_call {
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        }
        response
    }

    async fn take(&self, request: Request<Incoming>) -> Result<Vec<u8>, String> {
        if request.method() != Method::POST {
            return Err("a call is a POST".to_owned());
        }
        let length = request.body().size_hint().exact();
        let length = length.and_then(|length| u32::try_from(length.div_ceil(1024)).ok());
        let length = length.filter(|length| *length <= ROOM);
        let length = length.ok_or_else(|| format!("a call may have at most {} MiB", ROOM >> 10))?;
        let _room = self.room.acquire_many(length).await;
        let body = request.into_body().collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        let _call = self.calls.acquire().await;
        // A list would be read as one too.
        let body = body.strip_prefix(b"{").map(|_| body.as_ref());
        let asked = serde_json::from_slice(body.unwrap_or(b"no object"));
        let asked: Asked = asked.map_err(|error| format!("this is no call: {error}"))?;
        Ok(match asked.ask {
            Question::Command => self.command(&asked).await,
            _ => said(self.carry_out(asked).await),
        })
    }

    async fn carry_out(&self, asked: Asked) -> Value {
        let name = match asked.about.as_str() {
            "" => [asked.server.as_str(), asked.tool.as_str()].join("."),
            about => about.to_owned(),
        };
        let (server, tool) = (asked.server.clone(), asked.tool.clone());
        match self.find_out(asked).await {
            Ok(answer) => answer,
            Err(refused) => json!({ "error": {
                "kind": refused.error.kind(),
                "message": self.message(&refused, name.trim_end_matches('.')),
                "server": server,
                "tool": tool,
                "details": refused.details,
            } }),
        }
    }

    async fn find_out(&self, asked: Asked) -> Result<Value, Refused> {
        let value = |value: Value| Ok(json!({ "value": value }));
        match asked.ask {
            Question::Call => Ok(self.call(asked).await?.into_answer()),
            Question::Whole => {
                let result = self.whole(asked).await?;
                result_value::check(&result)?;
                Ok(json!({ "result": result }))
            }
            Question::Raw => Ok(json!({ "result": self.whole(asked).await? })),
            Question::Help => value(self.help(&asked.about).await?.into()),
            Question::Servers => value(self.listed_servers()),
            Question::Tools => value(self.tools(&asked.server).await?),
            Question::Listed => value(self.listed_tools(&asked.server).await?),
            Question::Search => value(self.search(&asked.about, asked.limit).await),
            Question::Resources => value(self.list(&asked.server, facts::RESOURCES).await?),
            Question::Prompts => value(self.list(&asked.server, facts::PROMPTS).await?),
            Question::Read => Ok(self.read(&asked.server, &asked.about).await?.into_answer()),
            Question::Prompt => {
                let arguments = asked.arguments.unwrap_or_default().to_map()?;
                let params = json!({ "name": asked.about, "arguments": arguments });
                let server = self.find(&asked.server)?;
                value(server.request("prompts/get", &params).await?)
            }
            Question::PythonStubs => value(self.python_stubs(&asked.about).await?.into()),
            Question::TypescriptStubs => value(self.typescript_stubs(&asked.about).await?.into()),
            Question::Command => Ok(Value::Null),
        }
    }

    async fn call(&self, asked: Asked) -> Result<ResultValue, Refused> {
        let result = self.whole(asked).await?;
        result_value::check(&result)?;
        Ok(ResultValue::of(result))
    }

    async fn whole(&self, asked: Asked) -> Result<Map<String, Value>, Refused> {
        let arguments = asked.arguments.unwrap_or_default();
        let found = self.find(&asked.server);
        if found.is_err()
            && let Some(any) = self.servers.first()
        {
            any.note_refused(&asked.server, &asked.tool, &arguments);
        }
        Ok(found?.call_whole(&asked.tool, arguments).await?)
    }

    /// What a program is told of a call of `name`, of a tool or a server.
    ///
    /// SECURITY: where the program does not catch it a model reads it beside our own words. So what a server says is in one line and bounded;
    /// all of it is in the details.
    fn message(&self, refused: &Refused, name: &str) -> String {
        let server = name.split('.').next().unwrap_or_default();
        let is_ours = self.find(server).is_ok_and(|it| it.settings().is_none());
        let error = refused.error.to_string();
        let error = match is_ours {
            true => error,
            false => cut(&one_line(&error), LONGEST_ERROR),
        };
        let hint = match refused.error {
            CallError::Unavailable(_) => "; run `hotcell servers` to see its messages",
            _ => "",
        };
        match name {
            "" => format!("{error}{hint}"),
            name => format!("{name}: {error}{hint}"),
        }
    }

    fn find(&self, name: &str) -> Result<&Arc<UpstreamServer>, CallError> {
        let named = |it: &&Arc<UpstreamServer>| it.alias == name || it.name == name;
        self.servers.iter().find(named).ok_or_else(|| {
            let names = self.servers.iter().map(|it| it.alias.as_str());
            let names = nearest_first(names.collect(), name);
            CallError::UnknownServer(names.join(", "))
        })
    }
}

fn said(answer: Value) -> Vec<u8> {
    answer.to_string().into_bytes()
}
