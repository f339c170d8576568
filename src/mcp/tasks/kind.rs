//! What each era says about tasks: who may have them, and what a server offers.

use serde_json::{Value, json};

use crate::mcp::context::Context;
use crate::mcp::era::{Era, Revision};
use crate::mcp::message::Fault;
use crate::mcp::objects::Tool;

/// The name of the extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// What of tasks a client knows, as its request says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Its requests may be answered with a task.
    Extension,
    /// This request asks for a task.
    Asked,
}

impl Kind {
    pub fn of(context: &Context) -> Option<Self> {
        match context.era {
            Era::Modern => {
                let capabilities = context.capabilities.as_ref();
                let extensions = capabilities.and_then(|all| all.get("extensions"));
                let declared = extensions.is_some_and(|all| all[EXTENSION].is_object());
                declared.then_some(Self::Extension)
            }
            Era::Legacy(Revision::V2025_11_25) => {
                let asked = context.params.get("task").is_some_and(Value::is_object);
                asked.then_some(Self::Asked)
            }
            Era::Legacy(_) => None,
        }
    }
}

/// What a server says of itself that has tasks.
pub fn add_capability(capabilities: &mut Value, era: Era) {
    match era {
        Era::Modern => capabilities["extensions"] = json!({ EXTENSION: {} }),
        Era::Legacy(Revision::V2025_11_25) => {
            capabilities["tasks"] =
                json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
        }
        Era::Legacy(_) => {}
    }
}

/// The entry of a tool in a list of this era.
pub fn listing(tool: &dyn Tool, era: Era) -> Value {
    let mut listing = tool.listing();
    if era == Era::Legacy(Revision::V2025_11_25) && tool.takes_tasks() {
        listing["execution"] = json!({ "taskSupport": "optional" });
    }
    listing
}

/// Refuses a call that asks for a task of a tool that has none.
pub fn check(tool: &dyn Tool, context: &Context) -> Result<(), Fault> {
    match Kind::of(context) {
        Some(Kind::Asked) if !tool.takes_tasks() => {
            let message = "this tool cannot be called as a task";
            Err(Fault::new(Fault::METHOD_NOT_FOUND, message))
        }
        _ => Ok(()),
    }
}
