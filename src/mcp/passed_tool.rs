//! A tool of an upstream server that is offered as it is, beside `run`.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::context::Context;
use super::message::Fault;
use super::objects::{Answer, Arguments, Boxed, Tool};
use crate::upstream::{self, UpstreamServer};

/// Characters of a description, and bytes of a schema, that are passed on.
const LONGEST: usize = 4000;
const LARGEST: usize = 64 << 10;

pub struct PassedTool {
    server: Arc<UpstreamServer>,
    /// As its server calls it.
    tool: String,
    listing: Value,
}

impl PassedTool {
    /// The tool under a name of ours; none if what its server says of it cannot be passed on.
    pub fn new(server: &Arc<UpstreamServer>, tool: &upstream::Tool, name: &str) -> Option<Self> {
        let schema = match &tool.input {
            schema if schema.to_string().len() > LARGEST => return None,
            schema if schema["type"] == "object" => schema.clone(),
            _ => json!({ "type": "object" }),
        };
        // SECURITY: a foreign server's words. Nothing that a terminal acts on, and no end that a model cannot see.
        let is_shown = |character: &char| *character == '\n' || !character.is_control();
        let about: String = tool
            .description
            .chars()
            .filter(is_shown)
            .take(LONGEST)
            .collect();
        Some(Self {
            server: server.clone(),
            tool: tool.name.clone(),
            listing: json!({ "name": name, "description": about, "inputSchema": schema }),
        })
    }
}

impl Tool for PassedTool {
    fn listing(&self) -> Value {
        self.listing.clone()
    }

    fn call<'a>(
        &'a self,
        arguments: Arguments,
        _: &'a Arc<Context>,
    ) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let arguments = upstream::Arguments::try_from(arguments);
            let called = match arguments {
                Ok(arguments) => self.server.call_whole(&self.tool, arguments).await,
                Err(error) => Err(error),
            };
            Ok(Answer::Complete(match called {
                // What is not part of a result of a tool is left out.
                Ok(mut result) => ["content", "structuredContent", "isError"]
                    .into_iter()
                    .filter_map(|key| Some((key.to_owned(), result.remove(key)?)))
                    .collect(),
                Err(error) => {
                    let text = format!("{}.{}: {error}", self.server.alias, self.tool);
                    let content = json!([{ "type": "text", "text": text }]);
                    Map::from_iter([
                        ("content".to_owned(), content),
                        ("isError".to_owned(), true.into()),
                    ])
                }
            }))
        })
    }
}
