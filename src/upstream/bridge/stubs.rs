//! The tools of servers as type declarations: `.pyi` and `.d.ts`.
//!
//! All of it is text of foreign servers: names are spelled as identifiers, and the rest stays in its comment.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::Value;

use super::{Bridge, CallError};
use crate::upstream::{Tool, UpstreamServer, signature};

impl Bridge {
    pub(super) async fn python_stubs(&self, about: &str) -> Result<String, CallError> {
        let mut text = "from typing import Any\n".to_owned();
        for (server, _) in self.meant(about)? {
            let Some(tools) = self.declared(about, server).await? else {
                continue;
            };
            let _ = write!(text, "\nclass {}:\n", server.alias);
            for tool in tools.iter() {
                text += &python(tool);
            }
            if tools.is_empty() {
                text += "    ...\n";
            }
        }
        Ok(text)
    }

    pub(super) async fn typescript_stubs(&self, about: &str) -> Result<String, CallError> {
        let mut text = String::new();
        for (server, _) in self.meant(about)? {
            let Some(tools) = self.declared(about, server).await? else {
                continue;
            };
            let tools = signature::interface(&tools);
            let _ = writeln!(text, "declare const {}: {tools};", server.alias);
        }
        Ok(text)
    }

    /// The tools of a server. Among all, one that cannot be had is left out.
    async fn declared(
        &self,
        about: &str,
        server: &UpstreamServer,
    ) -> Result<Option<Arc<Vec<Tool>>>, CallError> {
        match self.tools_for(about, server).await {
            Ok(tools) => Ok(Some(tools)),
            Err(_) if about.is_empty() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn python(tool: &Tool) -> String {
    let name = signature::spelled(&tool.name);
    let schema = &tool.input;
    let required = |name: &str| {
        let names = schema["required"].as_array().into_iter().flatten();
        names.into_iter().any(|it| it.as_str() == Some(name))
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let is_name = |name: &str| signature::spelled(name) == name;
    let (first, then): (Vec<_>, Vec<_>) = properties
        .filter(|(name, _)| is_name(name))
        .partition(|(name, _)| required(name));
    let parameter = |(name, schema): (&String, &Value), end: &str| {
        format!(", {name}: {}{end}", python_type(schema))
    };
    let first = first.into_iter().map(|it| parameter(it, ""));
    let then = then.into_iter().map(|it| parameter(it, " = ..."));
    let parameters: String = first.chain(then).collect();
    let parameters = match parameters.as_str() {
        "" => String::new(),
        some => format!("*{some}"),
    };
    let output = python_type(&tool.output);
    let about = signature::one_line(&tool.description)
        .replace('\\', "\\\\")
        .replace('"', "'");
    format!(
        "    @staticmethod\n    def {name}({parameters}) -> {output}:\n        \"\"\"{about}\"\"\"\n"
    )
}

fn python_type(schema: &Value) -> &'static str {
    match schema["type"].as_str() {
        Some("string") => "str",
        Some("integer") => "int",
        Some("number") => "float",
        Some("boolean") => "bool",
        Some("array") => "list[Any]",
        Some("object") => "dict[str, Any]",
        _ => "Any",
    }
}
