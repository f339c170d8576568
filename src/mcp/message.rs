//! JSON-RPC messages, one at a time.
//!
//! What comes in is hostile: depth is bounded by the parser, a key that occurs
//! twice is refused (two readers could see two different messages), and an id
//! is kept as the bytes it came in, so that it goes back unchanged.

mod id;
mod long;
mod strict;
mod weigh;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub use id::Id;
pub use long::IdSearch;
use strict::Strict;
pub use weigh::read;

/// A message that was understood.
#[derive(Debug)]
pub enum Message {
    Request(Request),
    Notification(Notification),
    /// The client's answer to something we asked.
    Response {
        id: Id,
        result: Result<Value, Fault>,
    },
}

#[derive(Debug)]
pub struct Request {
    pub id: Id,
    pub method: String,
    pub params: Map<String, Value>,
}

#[derive(Debug)]
pub struct Notification {
    pub method: String,
    pub params: Map<String, Value>,
}

/// A JSON-RPC error: the protocol was not kept. A program that fails is not one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct Fault {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl Fault {
    pub const PARSE: i64 = -32700;
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL: i64 = -32603;
    pub const BUSY: i64 = -32000;
    pub const HEADER_MISMATCH: i64 = -32020;
    pub const MISSING_CAPABILITY: i64 = -32021;
    pub const UNSUPPORTED_VERSION: i64 = -32022;

    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// There is no room for what was asked, or for its answer.
    pub fn busy() -> Self {
        Self::new(Self::BUSY, crate::memory_budget::BUSY)
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    pub fn method_not_found(method: &str) -> Self {
        // Bounded: the name came from outside.
        let method: String = method.chars().take(80).collect();
        Self::new(
            Self::METHOD_NOT_FOUND,
            format!("method not found: {method}"),
        )
    }

    pub fn with(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The message for this fault; without an id when the request had none we could read.
    pub fn to_message(&self, id: Option<&Id>) -> String {
        let mut error = serde_json::json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        match id {
            Some(id) => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#),
            None => format!(r#"{{"jsonrpc":"2.0","error":{error}}}"#),
        }
    }
}

/// The message that answers request `id`.
pub fn response(id: &Id, result: &Map<String, Value>) -> String {
    let result = serde_json::to_string(result).unwrap_or_else(|_| "{}".to_owned());
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

pub fn notification(method: &str, params: &Value) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":{},"params":{params}}}"#,
        Value::from(method)
    )
}

/// A request of ours to the client.
pub fn request(id: &str, method: &str, params: &Value) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"method":{},"params":{params}}}"#,
        Value::from(id),
        Value::from(method)
    )
}

/// Messages that a batch may have.
const MOST_AT_ONCE: usize = 64;

/// A message that was not understood, and the id to say so under if it had one.
#[derive(Debug)]
pub struct Garbled {
    pub id: Option<Id>,
    pub fault: Box<Fault>,
}

impl Garbled {
    pub fn to_message(&self) -> String {
        self.fault.to_message(self.id.as_ref())
    }
}

/// Whether these bytes are several messages in one.
pub fn is_batch(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'[')
}

/// Reads the messages of a batch.
pub fn parse_batch(bytes: &[u8]) -> Result<Vec<Result<Message, Garbled>>, Garbled> {
    let items: Vec<&RawValue> = serde_json::from_slice(bytes)
        .map_err(|error| refuse(Fault::PARSE, format!("not JSON: {error}")))?;
    if items.is_empty() || items.len() > MOST_AT_ONCE {
        let message = format!("a batch has 1 to {MOST_AT_ONCE} messages");
        return Err(refuse(Fault::INVALID_REQUEST, message));
    }
    let items = items.into_iter().map(|item| parse(item.get().as_bytes()));
    Ok(items.collect())
}

fn refuse(code: i64, message: String) -> Garbled {
    Garbled {
        id: None,
        fault: Box::new(Fault::new(code, message)),
    }
}

/// Reads one message.
pub fn parse(bytes: &[u8]) -> Result<Message, Garbled> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let envelope = reader
        .deserialize_map(EnvelopeVisitor)
        .and_then(|envelope| reader.end().map(|()| envelope));
    match envelope {
        Ok(envelope) => envelope.into_message(),
        Err(error) if error.is_data() => Err(refuse(Fault::INVALID_REQUEST, error.to_string())),
        Err(error) => Err(refuse(Fault::PARSE, format!("not JSON: {error}"))),
    }
}

/// The members of a message, before anything is made of them.
#[derive(Default)]
struct Envelope {
    version: Option<Value>,
    id: Option<Box<RawValue>>,
    method: Option<Value>,
    params: Option<Value>,
    result: Option<Value>,
    error: Option<Value>,
}

impl Envelope {
    fn into_message(self) -> Result<Message, Garbled> {
        let id = self.id.as_deref().map(Id::parse);
        let known = id.clone().and_then(Result::ok);
        let refuse = |code, message: &str| {
            Err(Garbled {
                id: known.clone(),
                fault: Box::new(Fault::new(code, message)),
            })
        };
        if self.version != Some(Value::from("2.0")) {
            return refuse(Fault::INVALID_REQUEST, "`jsonrpc` must be \"2.0\"");
        }
        let id = match id {
            Some(Err(reason)) => return refuse(Fault::INVALID_REQUEST, reason),
            Some(Ok(id)) => Some(id),
            None => None,
        };
        let method = match (self.method, id) {
            (Some(Value::String(method)), id) => (method, id),
            (Some(_), _) => return refuse(Fault::INVALID_REQUEST, "`method` must be a string"),
            (None, Some(id)) => return answer(id, self.result, self.error),
            (None, None) => return refuse(Fault::INVALID_REQUEST, "there is no `method`"),
        };
        let params = match self.params {
            None => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return refuse(Fault::INVALID_PARAMS, "`params` must be an object"),
        };
        Ok(match method {
            (method, Some(id)) => Message::Request(Request { id, method, params }),
            (method, None) => Message::Notification(Notification { method, params }),
        })
    }
}

fn answer(id: Id, result: Option<Value>, error: Option<Value>) -> Result<Message, Garbled> {
    let result = match (result, error) {
        (Some(result), None) => Ok(result),
        (None, Some(error)) => Err(Fault {
            code: error["code"].as_i64().unwrap_or(Fault::INTERNAL),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            data: error.get("data").cloned(),
        }),
        _ => {
            return Err(Garbled {
                id: None,
                fault: Box::new(Fault::new(
                    Fault::INVALID_REQUEST,
                    "neither a request nor an answer: there is no `method`",
                )),
            });
        }
    };
    Ok(Message::Response { id, result })
}

struct EnvelopeVisitor;

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = Envelope;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Envelope, A::Error> {
        let mut envelope = Envelope::default();
        let mut seen = Vec::new();
        while let Some(key) = members.next_key::<String>()? {
            if seen.contains(&key) {
                return Err(strict::twice(&key));
            }
            let place = match key.as_str() {
                "id" => {
                    envelope.id = Some(members.next_value()?);
                    seen.push(key);
                    continue;
                }
                "jsonrpc" => &mut envelope.version,
                "method" => &mut envelope.method,
                "params" => &mut envelope.params,
                "result" => &mut envelope.result,
                "error" => &mut envelope.error,
                // Not ours to judge; what we do not know we do not keep.
                _ => {
                    members.next_value::<Strict>()?;
                    continue;
                }
            };
            *place = Some(members.next_value::<Strict>()?.0);
            seen.push(key);
        }
        Ok(envelope)
    }
}

#[cfg(test)]
mod tests;
