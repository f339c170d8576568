//! The tool `search`: which tools of upstream servers a program could call.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::context::Context;
use super::message::Fault;
use super::objects::{Answer, Arguments, Boxed, Tool};
use crate::service::Service;
use crate::upstream::{Catalogue, MOST_HITS};

pub struct SearchTool(pub Arc<Service>);

impl Tool for SearchTool {
    fn listing(&self) -> Value {
        json!({
            "name": "search",
            "title": "Search tools",
            "description": "Find tools that code may call, one query per step. `server.tool` gives its documentation",
            "inputSchema": {
                "type": "object",
                "properties": { "query": { "type": "string" }, "limit": { "type": "integer" } },
                "required": ["query"],
            },
            "annotations": { "title": "Search tools", "readOnlyHint": true, "openWorldHint": false },
        })
    }

    /// Only where the description of `run` has no room for all tools.
    fn is_listed(&self) -> bool {
        let servers = self.0.upstream();
        servers.is_some_and(|it| matches!(it.catalogue(), Catalogue::Counted(_)))
    }

    fn call<'a>(
        &'a self,
        arguments: Arguments,
        _: &'a Arc<Context>,
    ) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let limit = arguments.get("limit").and_then(Value::as_u64);
            let limit = limit.and_then(|it| usize::try_from(it).ok());
            let answer = match (arguments.get("query"), self.0.upstream()) {
                (Some(Value::String(query)), Some(servers)) => {
                    Ok(servers.answer(query, limit.unwrap_or(MOST_HITS)))
                }
                (None, Some(servers)) => Ok(servers.answer("", MOST_HITS)),
                (Some(_), Some(_)) => Err("`query` must be a string"),
                (_, None) => Err("no servers are configured"),
            };
            let (text, is_error) = match answer {
                Ok(text) => (text, false),
                Err(why) => (why.to_owned(), true),
            };
            let content = json!([{ "type": "text", "text": text }]);
            Ok(Answer::Complete(Map::from_iter([
                ("content".to_owned(), content),
                ("isError".to_owned(), is_error.into()),
            ])))
        })
    }
}
