//! What a program is told of its servers: names, tools, resources, prompts.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Value, json};

use super::result_value::ResultValue;
use super::{Bridge, CallError};
use crate::upstream::nearest::find;
use crate::upstream::server::UpstreamServer;
use crate::upstream::{Tool, signature};

/// Pages of a list that are asked for, and the bytes of all together.
const MOST_PAGES: usize = 100;
const MOST_BYTES: usize = 64 << 20;

/// A list that a server has: how it is asked for, and its name in the answer.
#[derive(Clone, Copy)]
pub struct List(&'static str, &'static str);

pub const RESOURCES: List = List("resources/list", "resources");
pub const PROMPTS: List = List("prompts/list", "prompts");

impl Bridge {
    pub(super) fn listed_servers(&self) -> Value {
        let loaded = self.servers.iter();
        let loaded = loaded
            .map(|it| json!({ "name": it.name, "alias": it.alias, "cwd": it.folder() }))
            .collect::<Vec<_>>();
        let discovered = self.configured.iter();
        let discovered = discovered
            .map(|(name, about)| json!({ "name": name, "description": about }))
            .collect::<Vec<_>>();
        json!({ "loaded": loaded, "discovered": discovered })
    }

    pub(super) async fn tools(&self, server: &str) -> Result<Value, CallError> {
        let server = self.find(server)?;
        let tools = server.tools().await?;
        Ok(tools.iter().map(|tool| described(server, tool)).collect())
    }

    pub(super) async fn listed_tools(&self, server: &str) -> Result<Value, CallError> {
        Ok(self
            .find(server)?
            .tools()
            .await?
            .iter()
            .map(listed)
            .collect())
    }

    /// A tool, the tools of a server, or of all of them, in whole.
    pub(super) async fn help(&self, about: &str) -> Result<String, CallError> {
        let mut text = String::new();
        for (server, tool) in self.meant(about)? {
            let tools = match self.tools_for(about, server).await {
                Ok(tools) => tools,
                Err(error) if about.is_empty() => {
                    let _ = writeln!(text, "{}: {error}\n", server.alias);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let tools = match tool {
                Some(tool) => std::slice::from_ref(find(&tools, tool)?),
                None => tools.as_slice(),
            };
            for tool in tools {
                let _ = writeln!(text, "{}", signature::whole(&server.alias, tool));
            }
        }
        Ok(text)
    }

    /// The tools of a server that was asked about. Where all were, nobody waits for one whose tools are known.
    pub(super) async fn tools_for(
        &self,
        about: &str,
        server: &UpstreamServer,
    ) -> Result<Arc<Vec<Tool>>, CallError> {
        let known = server.known();
        match about.is_empty() && !known.is_empty() {
            true => Ok(known),
            false => server.tools().await,
        }
    }

    /// What `server`, `server.tool` or nothing means.
    pub(super) fn meant<'a>(
        &'a self,
        about: &'a str,
    ) -> Result<Vec<(&'a UpstreamServer, Option<&'a str>)>, CallError> {
        if about.is_empty() {
            return Ok(self.servers.iter().map(|it| (&**it, None)).collect());
        }
        let whole = self.find(about).map(|server| (&**server, None));
        let found = whole.or_else(|error| match about.split_once('.') {
            Some((server, tool)) => Ok((&**self.find(server)?, Some(tool))),
            None => Err(error),
        });
        Ok(vec![found?])
    }

    pub(super) async fn list(&self, server: &str, list: List) -> Result<Value, CallError> {
        let server = self.find(server)?;
        let (mut all, mut params, mut bytes) = (Vec::new(), json!({}), 0);
        for _ in 0..MOST_PAGES {
            let mut page = server.request(list.0, &params).await?;
            bytes += page.to_string().len();
            if bytes > MOST_BYTES {
                return Err(CallError::Tool("its list is too long".to_owned()));
            }
            if let Some(Value::Array(listed)) = page.get_mut(list.1) {
                all.append(listed);
            }
            match page.get("nextCursor").and_then(Value::as_str) {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => break,
            }
        }
        Ok(Value::Array(all))
    }

    /// What is at an address: text as text, all else as it came.
    pub(super) async fn read(&self, server: &str, uri: &str) -> Result<ResultValue, CallError> {
        let params = json!({ "uri": uri });
        let mut result = self
            .find(server)?
            .request("resources/read", &params)
            .await?;
        let contents = match result.get_mut("contents") {
            Some(Value::Array(contents)) => std::mem::take(contents),
            _ => Vec::new(),
        };
        let part = |content: Value| match content["text"].as_str() {
            Some(text) => json!({ "type": "text", "text": text }),
            None => json!({ "type": "resource", "resource": content }),
        };
        Ok(ResultValue::Parts(contents.into_iter().map(part).collect()))
    }
}

/// A tool as its server lists it.
fn listed(tool: &Tool) -> Value {
    let mut listed = json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input,
    });
    if !tool.output.is_null() {
        listed["outputSchema"] = tool.output.clone();
    }
    listed
}

/// The same with how programs write it.
fn described(server: &UpstreamServer, tool: &Tool) -> Value {
    let mut described = listed(tool);
    described["alias"] = signature::spelled(&tool.name).into();
    described["signature"] = signature::line(&server.alias, tool).into();
    described["help"] = signature::whole(&server.alias, tool).into();
    described
}
