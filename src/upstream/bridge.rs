//! The tool bridge: programs call tools over HTTP, on a port of their own loopback.
//!
//! A call is a `POST` of `{"server", "tool", "arguments"}`, or of `{"help"}` with the name of a server or of none; the
//! answer is `{"value"}` or `{"error"}`. SECURITY: everything that comes is untrusted: bounded, then parsed; and the servers that
//! a run was not given are not here.

use std::fmt::Write;
use std::pin::Pin;
use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::server::UpstreamServer;
use super::{Arguments, CallError, signature};
use crate::loopback::{Body, Http, full};

/// Calls of one run at a time, and the KiB of their arguments; more wait.
const CALLS: usize = 32;
const ROOM: u32 = 32 << 10;

pub struct Bridge {
    servers: Vec<Arc<UpstreamServer>>,
    calls: Semaphore,
    room: Semaphore,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Asked {
    server: String,
    tool: String,
    arguments: Option<Arguments>,
    help: Option<String>,
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
    pub fn new(servers: Vec<Arc<UpstreamServer>>) -> Self {
        Self {
            servers,
            calls: Semaphore::new(CALLS),
            room: Semaphore::new(ROOM as usize),
        }
    }

    async fn respond(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let is_call = request.method() == Method::POST;
        let answer = match self.take(request).await {
            Ok(answer) => answer,
            Err(why) => json!({ "error": { "kind": "arguments", "message": why } }),
        };
        let mut response = Response::new(full(answer.to_string()));
        if !is_call {
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        }
        response
    }

    async fn take(&self, request: Request<Incoming>) -> Result<Value, String> {
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
        let asked = asked.map_err(|error| format!("this is no call: {error}"))?;
        Ok(self.carry_out(asked).await)
    }

    async fn carry_out(&self, asked: Asked) -> Value {
        let done = match &asked.help {
            Some(about) => self.help(about).await.map(Value::String),
            None => match self.find(&asked.server) {
                Ok(server) => {
                    server
                        .call(&asked.tool, asked.arguments.unwrap_or_default())
                        .await
                }
                Err(error) => Err(error),
            },
        };
        match done {
            Ok(value) => json!({ "value": value }),
            Err(error) => {
                let name = match asked.help {
                    Some(about) => about,
                    None => format!("{}.{}", asked.server, asked.tool),
                };
                let hint = match error {
                    CallError::Unavailable(_) => "; run `hotcell servers` to see its messages",
                    _ => "",
                };
                json!({ "error": {
                    "kind": error.kind(),
                    "message": format!("{name}: {error}{hint}"),
                    "server": asked.server,
                    "tool": asked.tool,
                } })
            }
        }
    }

    fn find(&self, name: &str) -> Result<&Arc<UpstreamServer>, CallError> {
        let named = |it: &&Arc<UpstreamServer>| it.alias == name || it.name == name;
        self.servers.iter().find(named).ok_or_else(|| {
            let names: Vec<&str> = self.servers.iter().map(|it| it.alias.as_str()).collect();
            CallError::UnknownServer(names.join(", "))
        })
    }

    /// The tools of a server in whole; of all servers if none is named.
    async fn help(&self, about: &str) -> Result<String, CallError> {
        let mut text = String::new();
        let asked: Vec<_> = match about {
            "" => self.servers.iter().collect(),
            name => vec![self.find(name)?],
        };
        for server in asked {
            for tool in server.tools().await?.iter() {
                let _ = writeln!(text, "{}", signature::whole(&server.alias, tool));
            }
        }
        Ok(text)
    }
}
