//! HTTP responses: which status an answer gets, and which headers go with it.

use http_body_util::BodyExt;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
};
use hyper::{Response, StatusCode};

use super::events::{Body, Events, plain};
use super::pieces::Pieces;
use crate::mcp::{Fault, Garbled, Reply};
use crate::memory_budget::{self, Hold};

pub type Answered = Response<Body>;

/// Legacy clients read faults from a body with status 200 only.
pub fn status(reply: &Reply) -> StatusCode {
    let Some(code) = reply.code else {
        return StatusCode::OK;
    };
    if reply.malformed {
        return StatusCode::BAD_REQUEST;
    }
    if !reply.era.is_some_and(|era| era.is_modern()) {
        return StatusCode::OK;
    }
    match code {
        Fault::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        Fault::MISSING_CAPABILITY
        | Fault::UNSUPPORTED_VERSION
        | Fault::HEADER_MISMATCH
        | Fault::INVALID_REQUEST => StatusCode::BAD_REQUEST,
        Fault::INTERNAL => StatusCode::INTERNAL_SERVER_ERROR,
        Fault::BUSY => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    }
}

pub fn event_stream(events: Events) -> Answered {
    let mut answer = Box::new(Response::new(events.boxed()));
    set(&mut answer, CONTENT_TYPE, "text/event-stream");
    set(&mut answer, CACHE_CONTROL, "no-store");
    set(
        &mut answer,
        HeaderName::from_static("x-accel-buffering"),
        "no",
    );
    *answer
}

/// An answer that is held until its client has read it.
pub fn respond_held(status: StatusCode, body: String, hold: Hold) -> Answered {
    let body = Pieces::new(body.into(), hold).boxed_unsync();
    respond(status, "application/json", "").map(|_| body)
}

pub fn respond(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answered {
    let mut answer = Box::new(Response::new(plain(body)));
    *answer.status_mut() = status;
    set(&mut answer, CONTENT_TYPE, kind);
    set(&mut answer, CACHE_CONTROL, "no-store");
    *answer
}

/// There is no room for what is asked, or for its answer.
pub fn busy() -> Box<Answered> {
    let mut answer = refuse(StatusCode::SERVICE_UNAVAILABLE, memory_budget::BUSY);
    set(&mut answer, RETRY_AFTER, "1");
    answer
}

/// A refusal also ends the connection: what follows on it may be the rest of a
/// body that we did not read.
pub fn refuse(status: StatusCode, message: impl Into<String>) -> Box<Answered> {
    let mut answer = Box::new(respond(status, "text/plain", message.into() + "\n"));
    set(&mut answer, CONNECTION, "close");
    answer
}

pub fn json_error(message: String) -> Box<Answered> {
    Box::new(respond(
        StatusCode::BAD_REQUEST,
        "application/json",
        message,
    ))
}

/// A message that was not understood, or that there is no room for.
pub fn unread(garbled: Garbled) -> Box<Answered> {
    match garbled.fault.code {
        Fault::BUSY => busy(),
        _ => json_error(garbled.to_message()),
    }
}

pub fn no_session() -> Box<Answered> {
    let fault = Fault::new(Fault::INVALID_REQUEST, "there is no such session");
    let message = fault.to_message(None);
    Box::new(respond(StatusCode::NOT_FOUND, "application/json", message))
}

pub fn not_allowed() -> Box<Answered> {
    let message =
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Method not allowed."},"id":null}"#;
    let mut answer = Box::new(respond(
        StatusCode::METHOD_NOT_ALLOWED,
        "application/json",
        message,
    ));
    set(&mut answer, ALLOW, "POST");
    answer
}

pub fn set(answer: &mut Answered, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}
