//! The body of a POST: its headers are checked before it is read, and it is bounded in size and time.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, StatusCode};

use super::responses::{Answered, busy, refuse};
use crate::memory_budget::Hold;

const MOST_BODY: usize = 8 << 20;
const BODY_TIME: Duration = Duration::from_secs(30);

/// The forms of an answer that the client takes.
pub struct Accepts {
    pub json: bool,
    pub events: bool,
}

impl Accepts {
    pub fn read(headers: &HeaderMap) -> Result<Self, Box<Answered>> {
        let mut any = false;
        let (mut json, mut events) = (false, false);
        for value in headers.get_all(ACCEPT) {
            any = true;
            for range in value.to_str().unwrap_or_default().split(',') {
                match range.split(';').next().unwrap_or_default().trim() {
                    "*/*" => (json, events) = (true, true),
                    "application/json" | "application/*" => json = true,
                    "text/event-stream" | "text/*" => events = true,
                    _ => {}
                }
            }
        }
        if any && !json && !events {
            return Err(refuse(
                StatusCode::NOT_ACCEPTABLE,
                "answers are application/json or text/event-stream",
            ));
        }
        // A client that says nothing takes everything.
        Ok(Self {
            json: json || !any,
            events: events || !any,
        })
    }
}

/// SECURITY: a page of another origin can post text or forms without asking first,
/// but no JSON.
pub fn check_content(headers: &HeaderMap) -> Result<(), Box<Answered>> {
    let wrong = |message| Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::to_str);
    let Some(Ok(kind)) = kind else {
        return wrong("the Content-Type must be application/json");
    };
    let mut parts = kind.split(';').map(str::trim);
    let is_json = parts
        .next()
        .is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    let is_utf8 = parts.all(|parameter| {
        let charset = parameter.to_ascii_lowercase();
        charset
            .strip_prefix("charset=")
            .is_none_or(|name| matches!(name.trim_matches('"'), "utf-8" | "utf8"))
    });
    if !is_json || !is_utf8 {
        return wrong("the Content-Type must be application/json in UTF-8");
    }
    match headers.get(CONTENT_ENCODING) {
        Some(coding) if coding != "identity" => wrong("compressed requests are not supported"),
        _ => Ok(()),
    }
}

/// A body that has come whole, and what is held of it.
pub async fn read_body(
    headers: &HeaderMap,
    body: Incoming,
) -> Result<(Vec<u8>, Hold), Box<Answered>> {
    let too_large = || {
        let message = format!("a body may have {MOST_BODY} bytes at most");
        refuse(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > MOST_BODY as u64) {
        return Err(too_large());
    }
    let reading = collect(body);
    match tokio::time::timeout(BODY_TIME, reading).await {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(Unread::TooLarge)) => Err(too_large()),
        Ok(Err(Unread::Busy)) => Err(busy()),
        Ok(Err(Unread::Broken)) => Err(refuse(
            StatusCode::BAD_REQUEST,
            "the body could not be read",
        )),
        Err(_) => Err(refuse(
            StatusCode::REQUEST_TIMEOUT,
            "the body took too long",
        )),
    }
}

/// Why a body was not read.
enum Unread {
    TooLarge,
    Busy,
    Broken,
}

/// Reads a body piece by piece: each is counted before the next is waited for, so one that is never finished is counted too.
async fn collect(mut body: Incoming) -> Result<(Vec<u8>, Hold), Unread> {
    let (mut bytes, mut hold) = (Vec::new(), Hold::default());
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|_| Unread::Broken)?.into_data() else {
            continue;
        };
        if bytes.len() + piece.len() > MOST_BODY {
            return Err(Unread::TooLarge);
        }
        // As it came, and as what it is read into.
        if !hold.grow(2 * piece.len()) {
            return Err(Unread::Busy);
        }
        bytes.extend_from_slice(&piece);
    }
    Ok((bytes, hold))
}
