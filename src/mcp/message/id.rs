//! The id of a request, kept as it was written.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde_json::value::RawValue;

/// A JSON string or integer, byte for byte as the client wrote it: `9007199254740993`
/// and `-0` come back as they came.
#[derive(Debug, Clone)]
pub struct Id {
    raw: Box<str>,
    /// What a string id says, which can be written in several ways.
    text: Option<Box<str>>,
}

/// More than any client uses. Ids are kept for as long as their requests.
const LONGEST: usize = 1024;

impl Id {
    pub(super) fn parse(raw: &RawValue) -> Result<Self, &'static str> {
        Self::read(raw.get())
    }

    /// Reads an id that stands inside params, as in a cancellation.
    pub fn of_value(value: &serde_json::Value) -> Option<Self> {
        Self::read(&value.to_string()).ok()
    }

    /// What a string id says.
    pub fn as_text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The id as a value, for the places where the protocol repeats it.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(&self.raw).unwrap_or_default()
    }

    pub(super) fn read(raw: &str) -> Result<Self, &'static str> {
        if raw.len() > LONGEST {
            return Err("`id` is too long");
        }
        let digits = raw.strip_prefix('-').unwrap_or(raw);
        let text = if raw.starts_with('"') {
            let text: String = serde_json::from_str(raw).map_err(|_| "`id` is not text")?;
            Some(text.into_boxed_str())
        } else if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            None
        } else {
            return Err("`id` must be a string or an integer");
        };
        Ok(Self {
            raw: raw.into(),
            text,
        })
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        match (&self.text, &other.text) {
            (None, None) => self.raw == other.raw,
            (ours, theirs) => ours == theirs,
        }
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.text {
            Some(text) => text.hash(state),
            None => self.raw.hash(state),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.raw)
    }
}
