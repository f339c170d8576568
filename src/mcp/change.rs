//! Changes that clients are notified of.

use serde_json::{Value, json};

/// Something that clients may want to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Tools,
    Prompts,
    Resources,
    /// The content of one resource.
    Updated(String),
}

impl Change {
    pub fn method(&self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Updated(_) => "notifications/resources/updated",
        }
    }

    pub fn params(&self) -> Value {
        match self {
            Self::Updated(uri) => json!({ "uri": uri }),
            _ => json!({}),
        }
    }
}
