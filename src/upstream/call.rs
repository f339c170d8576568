//! A call of a tool: what it is given, and why it has no value.

use serde::de::{self, Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Arrays and objects within each other in the arguments of a call.
const DEEPEST: usize = 100;

/// The arguments of a call as a program wrote them: JSON, and an object. It is not taken apart here: most of it passes through.
#[derive(Debug, Clone)]
pub struct Arguments(pub(super) Box<RawValue>);

impl Default for Arguments {
    fn default() -> Self {
        Self(RawValue::from_string("{}".to_owned()).expect("an object"))
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(from)?;
        if !raw.get().starts_with('{') {
            return Err(de::Error::custom("`arguments` must be an object"));
        }
        // SECURITY: many readers of JSON break over a deep one, and a server is shared by all runs.
        if depth(raw.get()) > DEEPEST {
            return Err(de::Error::custom("`arguments` are nested too deeply"));
        }
        Ok(Self(raw))
    }
}

impl TryFrom<Map<String, Value>> for Arguments {
    type Error = CallError;

    fn try_from(arguments: Map<String, Value>) -> Result<Self, CallError> {
        let read = serde_json::from_str(&Value::Object(arguments).to_string());
        read.map_err(|error| CallError::Arguments(error.to_string()))
    }
}

impl Arguments {
    /// As the program wrote them.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    pub fn to_map(&self) -> Result<Map<String, Value>, CallError> {
        let read = serde_json::from_str(self.0.get());
        read.map_err(|error| CallError::Arguments(error.to_string()))
    }
}

/// How deep the arrays and objects of a JSON text are in each other.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Why a call has no value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallError {
    /// The tool says so.
    #[error("{0}")]
    Tool(String),
    #[error("{0}")]
    Arguments(String),
    #[error("unknown tool; known are: {0}")]
    UnknownTool(String),
    #[error("unknown server; known are: {0}")]
    UnknownServer(String),
    #[error("the server is not available: {0}")]
    Unavailable(String),
    /// The owner does not let programs do that.
    #[error("this is not allowed: {0}")]
    Denied(String),
    #[error("it took longer than {0} s (`timeout`)")]
    Timeout(f64),
}

impl CallError {
    /// A stable name of the reason.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Arguments(_) => "arguments",
            Self::UnknownTool(_) => "unknown_tool",
            Self::UnknownServer(_) => "unknown_server",
            Self::Unavailable(_) => "unavailable",
            Self::Denied(_) => "denied",
            Self::Timeout(_) => "timeout",
        }
    }
}
