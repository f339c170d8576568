//! Why a server at an address did not answer: never its address, which may hold a secret, and little of what it wrote.

use std::error::Error;

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::streamable_http_client::{AuthRequiredError, StreamableHttpError};

use crate::upstream::CallError;
use crate::upstream::connection::ENDED;

/// Why a server is not reached that wants a token.
pub const LOGIN: &str = "it wants a login";

/// Why there is no answer of one that does not come to an end.
pub const TOO_LONG: &str = "its answer is too long";

const NO_PROTOCOL: &str = "it does not speak the protocol";

/// Why there is none.
pub struct Refused {
    pub why: String,
    /// Whether the server may be one of the older era, or of the older transport.
    pub may_be_older: bool,
}

pub fn refused(error: &ClientInitializeError, has_token: bool) -> Refused {
    let error = match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => fallback,
        other => other,
    };
    let why = match error {
        ClientInitializeError::TransportError { error, .. } => transport(error.error.as_ref()),
        ClientInitializeError::JsonRpcError(error) => format!("it refused: {}", error.message),
        ClientInitializeError::ConnectionClosed(_) => ENDED.to_owned(),
        _ => NO_PROTOCOL.to_owned(),
    };
    let why = match why == LOGIN && has_token {
        true => "it refuses its token".to_owned(),
        false => why,
    };
    let older = [
        "it answered HTTP 400",
        "it answered HTTP 404",
        "it answered HTTP 405",
        "it answered HTTP 5",
        NO_PROTOCOL,
    ];
    Refused {
        may_be_older: older.iter().any(|start| why.starts_with(start)),
        why,
    }
}

pub fn failure(error: &ServiceError) -> CallError {
    match error {
        ServiceError::McpError(error) => CallError::Tool(error.message.clone().into_owned()),
        ServiceError::TransportSend(error) => {
            CallError::Unavailable(transport(error.error.as_ref()))
        }
        ServiceError::TransportClosed => CallError::Unavailable(ENDED.to_owned()),
        _ => CallError::Tool("it gave no result".to_owned()),
    }
}

/// Why a request did not get through.
fn transport(error: &(dyn Error + Send + Sync + 'static)) -> String {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if current.is::<AuthRequiredError>() {
            return LOGIN.to_owned();
        }
        if let Some(error) = current.downcast_ref::<reqwest::Error>() {
            return unreachable(error);
        }
        if let Some(error) = current.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            match error {
                StreamableHttpError::Client(error) => return unreachable(error),
                StreamableHttpError::Auth(_) => return LOGIN.to_owned(),
                StreamableHttpError::HttpStatus(status) => {
                    return format!("it answered HTTP {}", status.status);
                }
                StreamableHttpError::UnexpectedServerResponse(text) if text == TOO_LONG => {
                    return TOO_LONG.to_owned();
                }
                StreamableHttpError::UnexpectedServerResponse(text) => {
                    let status = text.strip_prefix("HTTP ").and_then(|it| it.get(..3));
                    return match status {
                        Some("401" | "403") => LOGIN.to_owned(),
                        Some(status) => format!("it answered HTTP {status}"),
                        None => NO_PROTOCOL.to_owned(),
                    };
                }
                StreamableHttpError::UnexpectedContentType(_) => {
                    return NO_PROTOCOL.to_owned();
                }
                _ => {}
            }
        }
        cause = current.source();
    }
    "its connection broke".to_owned()
}

pub fn unreachable(error: &reqwest::Error) -> String {
    match error.status() {
        Some(status) => format!("it answered HTTP {}", status.as_u16()),
        None if error.is_timeout() => "it cannot be reached in time".to_owned(),
        None => format!("it cannot be reached: {}", innermost(error)),
    }
}

/// The first cause of all, which names no address.
pub fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    match last.downcast_ref::<reqwest::Error>() {
        Some(_) => "its connection broke".to_owned(),
        None => last.to_string(),
    }
}
