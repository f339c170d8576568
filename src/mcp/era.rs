//! By which revision of the protocol a request is served.
//!
//! Decided for each request alone and never remembered: hosts have been seen to
//! probe with the modern era, fall back to `initialize`, and go on modern, all in
//! one process.

use serde_json::{Map, Value, json};

use super::message::{Fault, Request};
use super::session::Session;

/// The revision without `initialize`: each request says all about itself.
pub const MODERN: &str = "2026-07-28";
/// The revisions that start with `initialize`, newest first.
pub const LEGACY: [Revision; 3] = [
    Revision::V2025_11_25,
    Revision::V2025_06_18,
    Revision::V2025_03_26,
];
pub const SUPPORTED: [&str; 4] = [MODERN, "2025-11-25", "2025-06-18", "2025-03-26"];

pub const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
pub const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
pub const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
pub const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Modern,
    Legacy(Revision),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
}

impl Revision {
    pub fn parse(name: &str) -> Option<Self> {
        LEGACY.into_iter().find(|known| known.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }
}

/// How a request came to us, as far as the protocol cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    Stdio,
    Http {
        /// The `MCP-Protocol-Version` header.
        version: Option<String>,
    },
}

impl Transport {
    /// Whether several messages may come as one: in the one revision that had it.
    pub fn allows_batches(&self, session: &Session) -> bool {
        let oldest = Revision::V2025_03_26;
        let opened = session.revision();
        match self {
            Self::Stdio => opened == Some(oldest),
            Self::Http {
                version: Some(name),
            } => name == oldest.name(),
            Self::Http { version: None } => opened.is_none_or(|revision| revision == oldest),
        }
    }
}

impl Era {
    pub fn of(request: &Request, transport: &Transport, session: &Session) -> Result<Self, Fault> {
        let meta = request.params.get("_meta").and_then(Value::as_object);
        if let Some(version) = meta.and_then(|meta| meta.get(VERSION_KEY)) {
            return modern(version, meta);
        }
        let missing = || {
            Err(Fault::invalid_params(format!(
                "`params._meta` must have `{VERSION_KEY}` and `{CAPABILITIES_KEY}`"
            )))
        };
        let header = match transport {
            Transport::Http { version } => version.as_deref(),
            Transport::Stdio => None,
        };
        if header == Some(MODERN) {
            return missing();
        }
        match request.method.as_str() {
            "server/discover" | "subscriptions/listen" => return missing(),
            "initialize" => return Ok(Self::Legacy(asked_revision(&request.params))),
            _ => {}
        }
        match (transport, header) {
            (Transport::Http { .. }, Some(version)) => match Revision::parse(version) {
                Some(revision) => Ok(Self::Legacy(revision)),
                None => Err(unsupported(version)),
            },
            _ => match session.revision() {
                Some(revision) => Ok(Self::Legacy(revision)),
                // A client that names nothing speaks the revision that had no header yet.
                None if transport != &Transport::Stdio => Ok(Self::Legacy(Revision::V2025_03_26)),
                None if request.method == "ping" => Ok(Self::Legacy(Revision::V2025_11_25)),
                None => Err(Fault::invalid_params(format!(
                    "nothing was opened: send `initialize` first, or put `{VERSION_KEY}` and \
                     `{CAPABILITIES_KEY}` into `params._meta`"
                ))),
            },
        }
    }

    pub fn is_modern(self) -> bool {
        self == Self::Modern
    }
}

/// The revision to open with: the client's if we serve it. A newer one than it
/// asked for makes some clients leave.
pub fn asked_revision(params: &Map<String, Value>) -> Revision {
    params
        .get("protocolVersion")
        .and_then(Value::as_str)
        .and_then(Revision::parse)
        .unwrap_or(Revision::V2025_11_25)
}

fn modern(version: &Value, meta: Option<&Map<String, Value>>) -> Result<Era, Fault> {
    let Some(version) = version.as_str() else {
        return Err(Fault::invalid_params(format!(
            "`{VERSION_KEY}` must be a string"
        )));
    };
    if version != MODERN {
        return Err(unsupported(version));
    }
    let capabilities = meta.and_then(|meta| meta.get(CAPABILITIES_KEY));
    if !capabilities.is_some_and(Value::is_object) {
        return Err(Fault::invalid_params(format!(
            "`params._meta` must have `{CAPABILITIES_KEY}`, an object"
        )));
    }
    Ok(Era::Modern)
}

fn unsupported(version: &str) -> Fault {
    let version: String = version.chars().take(40).collect();
    Fault::new(
        Fault::UNSUPPORTED_VERSION,
        format!("protocol version {version:?} is not supported"),
    )
    .with(json!({ "supported": SUPPORTED, "requested": version }))
}
