//! What a result is to a program: its structure; or its text; or its parts, of which some are no text.

use serde_json::{Map, Value, json};

use super::CallError;

/// Why there is no value, and what a tool said beside that.
pub struct Refused {
    pub error: CallError,
    pub details: Value,
}

impl From<CallError> for Refused {
    fn from(error: CallError) -> Self {
        Self {
            error,
            details: Value::Null,
        }
    }
}

pub enum ResultValue {
    Structure(Value),
    /// The program reads it as JSON if it is: numbers of any size stay what they are.
    Text(String),
    Parts(Vec<Value>),
}

impl ResultValue {
    pub fn of(mut result: Map<String, Value>) -> Self {
        let structure = result.remove("structuredContent").unwrap_or_default();
        if !structure.is_null() {
            return Self::Structure(structure);
        }
        match result.remove("content") {
            Some(Value::Array(parts)) => match text(&parts) {
                Some(text) => Self::Text(text),
                None => Self::Parts(parts),
            },
            _ => Self::Text(String::new()),
        }
    }

    pub fn into_answer(self) -> Value {
        match self {
            Self::Structure(value) => json!({ "value": value }),
            Self::Text(text) => json!({ "text": text }),
            Self::Parts(parts) => json!({ "parts": parts }),
        }
    }
}

/// The value of a result, as whoever called it at the command line wants it.
pub fn value(result: Map<String, Value>) -> Result<Value, CallError> {
    check(&result).map_err(|refused| refused.error)?;
    Ok(match ResultValue::of(result) {
        ResultValue::Structure(value) => value,
        ResultValue::Text(text) => read(text),
        ResultValue::Parts(parts) => parts.into(),
    })
}

/// A text, or what it is as JSON.
pub fn read(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// The text of parts that are nothing else.
fn text(parts: &[Value]) -> Option<String> {
    let text = |part: &Value| match part["type"] == "text" {
        true => part["text"].as_str().map(str::to_owned),
        false => None,
    };
    let texts: Option<Vec<String>> = parts.iter().map(text).collect();
    Some(texts?.join("\n"))
}

/// Whether a result is one: a tool may say that it failed, and how.
pub fn check(result: &Map<String, Value>) -> Result<(), Refused> {
    if result.get("isError") != Some(&Value::Bool(true)) {
        return Ok(());
    }
    let content = result.get("content");
    let parts = content.and_then(Value::as_array).map(Vec::as_slice);
    let said = parts.and_then(text);
    let structure = result.get("structuredContent");
    let details = structure.filter(|it| !it.is_null()).or(content);
    let details = details.cloned().unwrap_or_default();
    Err(Refused {
        error: CallError::Tool(said.unwrap_or_else(|| "it failed".to_owned())),
        details,
    })
}
