//! One request after another: who may, what is asked, and in which form it is answered.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE,
    HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{HeaderMap, Method, Request as HttpRequest, Response, StatusCode};
use serde_json::Value;

use super::Settings;
use super::connections::{AtWork, Connection};
use super::events::{Body, Events, Work, plain};
use super::headers;
use super::sessions::Sessions;
use super::token::Failures;
use crate::mcp::{
    Fault, Id, MODERN, Message, Outbox, Peer, Reply, Request, Revision, Server, Session,
    VERSION_KEY, Way, parse,
};

const MOST_BODY: usize = 8 << 20;
const BODY_TIME: Duration = Duration::from_secs(30);
/// After this time a client hears that we are still there.
const PATIENCE: Duration = Duration::from_secs(5);

pub struct Endpoint {
    server: Arc<Server>,
    settings: Settings,
    port: u16,
    sessions: Sessions,
    failures: Failures,
}

type Answered = Response<Body>;

impl Endpoint {
    pub fn new(server: Arc<Server>, settings: Settings, port: u16) -> Self {
        Self {
            server,
            settings,
            port,
            sessions: Sessions::default(),
            failures: Failures::default(),
        }
    }

    pub async fn handle(
        &self,
        request: HttpRequest<Incoming>,
        from: IpAddr,
        connection: &Connection,
    ) -> Result<Answered, Infallible> {
        let answered = self.answer(request, from, connection).await;
        Ok(answered.unwrap_or_else(|refused| *refused))
    }

    async fn answer(
        &self,
        request: HttpRequest<Incoming>,
        from: IpAddr,
        connection: &Connection,
    ) -> Result<Answered, Box<Answered>> {
        let headers = request.headers();
        if !self.settings.names.allow(request.uri(), headers, self.port) {
            return Err(refuse(
                StatusCode::FORBIDDEN,
                "this Host or Origin is not served",
            ));
        }
        if request.uri().path() == "/healthz" && request.method() == Method::GET {
            return Ok(respond(StatusCode::OK, "text/plain", "ok\n"));
        }
        self.authorize(headers, from)?;
        if request.uri().path() != "/mcp" {
            return Err(refuse(StatusCode::NOT_FOUND, "there is only /mcp"));
        }
        match *request.method() {
            Method::POST => self.post(request, connection).await,
            Method::DELETE => self.delete(headers),
            _ => Err(not_allowed()),
        }
    }

    fn authorize(&self, headers: &HeaderMap, from: IpAddr) -> Result<(), Box<Answered>> {
        let Some(token) = &self.settings.token else {
            return Ok(());
        };
        // The right token passes whatever strangers on the same address have tried.
        if token.is_borne_by(headers) {
            return Ok(());
        }
        if self.failures.count(from) {
            let mut answer = refuse(StatusCode::TOO_MANY_REQUESTS, "too many wrong tokens");
            set(&mut answer, RETRY_AFTER, "60");
            return Err(answer);
        }
        let mut answer = refuse(StatusCode::UNAUTHORIZED, "a bearer token is needed");
        set(&mut answer, WWW_AUTHENTICATE, "Bearer");
        Err(answer)
    }

    fn delete(&self, headers: &HeaderMap) -> Result<Answered, Box<Answered>> {
        match headers.get(headers::SESSION).map(HeaderValue::to_str) {
            Some(Ok(id)) if self.sessions.end(id) => {
                Ok(respond(StatusCode::NO_CONTENT, "text/plain", ""))
            }
            Some(_) if self.settings.sessions => Err(no_session()),
            _ => Err(not_allowed()),
        }
    }

    async fn post(
        &self,
        request: HttpRequest<Incoming>,
        connection: &Connection,
    ) -> Result<Answered, Box<Answered>> {
        let (head, body) = request.into_parts();
        let headers = head.headers;
        let accepts = Accepts::read(&headers)?;
        check_content(&headers)?;
        let body = read_body(&headers, body).await?;
        // A known client with a whole request: not one to be sent away for another.
        let at_work = connection.at_work();
        let message = parse(&body).map_err(|garbled| json_error(garbled.to_message()))?;
        drop(body);
        let request = match message {
            Message::Request(request) => request,
            other => {
                let session = self.session(&headers)?.unwrap_or_default();
                self.server.hear(other, &session);
                return Ok(respond(StatusCode::ACCEPTED, "text/plain", ""));
            }
        };
        let version = self.check_version(&headers, &request)?;
        let session = match version {
            // The modern era has no sessions; an id that comes along means nothing.
            Version::Modern => Arc::default(),
            Version::Legacy if request.method == "initialize" => Arc::default(),
            Version::Legacy => self.session(&headers)?.unwrap_or_default(),
        };
        let opens = request.method == "initialize" && matches!(version, Version::Legacy);
        let way = Way::Http {
            version: headers
                .get(headers::VERSION)
                .and_then(|value| value.to_str().ok())
                .map(|text| text.trim().to_owned()),
        };
        let mut answer = self
            .respond(request, session.clone(), way, accepts, at_work)
            .await;
        if opens && self.settings.sessions && session.revision().is_some() {
            let id = self.sessions.add(session);
            set(&mut answer, HeaderName::from_static(headers::SESSION), &id);
        }
        Ok(answer)
    }

    /// The era that the headers and the body agree on.
    fn check_version(
        &self,
        headers: &HeaderMap,
        request: &Request,
    ) -> Result<Version, Box<Answered>> {
        let fault = |fault: Fault| json_error(fault.to_message(Some(&request.id)));
        let shown = headers::single(headers, headers::VERSION).map_err(fault)?;
        let named = request
            .params
            .get("_meta")
            .and_then(|meta| meta.get(VERSION_KEY));
        match named {
            Some(Value::String(named)) => {
                let catalog = self.server.catalog();
                headers::check(headers, named, request, &catalog).map_err(fault)?;
                Ok(Version::Modern)
            }
            // What is wrong with it is for the server to say.
            Some(_) => Ok(Version::Modern),
            None => match shown {
                Some(MODERN) => Ok(Version::Modern),
                Some(version) if Revision::parse(version).is_none() => {
                    let version: String = version.chars().take(40).collect();
                    let message = format!("protocol version {version:?} is not served");
                    Err(fault(Fault::new(Fault::INVALID_REQUEST, message)))
                }
                _ => Ok(Version::Legacy),
            },
        }
    }

    fn session(&self, headers: &HeaderMap) -> Result<Option<Arc<Session>>, Box<Answered>> {
        let Some(id) = headers.get(headers::SESSION) else {
            return Ok(None);
        };
        let found = id.to_str().ok().and_then(|id| self.sessions.find(id));
        found.map(Some).ok_or_else(no_session)
    }

    /// Plain JSON if the answer is all there is to say, else a stream of events.
    async fn respond(
        &self,
        request: Request,
        session: Arc<Session>,
        way: Way,
        accepts: Accepts,
        at_work: AtWork,
    ) -> Answered {
        let (out, mut messages) = Outbox::new(64);
        let server = self.server.clone();
        let mut work: Work = Box::pin(async move {
            let peer = Peer { session, way, out };
            server.answer(request, &peer).await
        });
        let mut ready = VecDeque::new();
        if !accepts.events {
            messages.close();
        }
        let reply = tokio::select! {
            biased;
            reply = &mut work => Some(reply),
            Some(message) = messages.recv() => {
                ready.push_back(message);
                None
            }
            () = tokio::time::sleep(PATIENCE), if accepts.events => None,
        };
        let Some(reply) = reply else {
            return event_stream(Events::new(Some(work), messages, ready, at_work));
        };
        while let Ok(message) = messages.try_recv() {
            ready.push_back(message);
        }
        match reply {
            // The client took it back, so there is nothing to say.
            None => respond(StatusCode::NO_CONTENT, "text/plain", ""),
            Some(reply) if ready.is_empty() => {
                let status = status(&reply);
                respond(status, "application/json", reply.message)
            }
            Some(reply) => {
                ready.push_back(reply.message);
                event_stream(Events::new(None, messages, ready, at_work))
            }
        }
    }
}

enum Version {
    Modern,
    Legacy,
}

/// The forms of an answer that the client takes.
struct Accepts {
    events: bool,
}

impl Accepts {
    fn read(headers: &HeaderMap) -> Result<Self, Box<Answered>> {
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
        Ok(Self { events })
    }
}

/// SECURITY: a page of another origin can post text or forms without asking first,
/// but no JSON.
fn check_content(headers: &HeaderMap) -> Result<(), Box<Answered>> {
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
        Some(coding) if coding != "identity" => wrong("compressed requests are not served"),
        _ => Ok(()),
    }
}

async fn read_body(headers: &HeaderMap, body: Incoming) -> Result<Bytes, Box<Answered>> {
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
    match tokio::time::timeout(BODY_TIME, Limited::new(body, MOST_BODY).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(refuse(
            StatusCode::BAD_REQUEST,
            "the body could not be read",
        )),
        Err(_) => Err(refuse(
            StatusCode::REQUEST_TIMEOUT,
            "the body took too long",
        )),
    }
}

/// Legacy clients read faults from a body with status 200 only.
fn status(reply: &Reply) -> StatusCode {
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
        _ => StatusCode::OK,
    }
}

fn event_stream(events: Events) -> Answered {
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

fn respond(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answered {
    let mut answer = Box::new(Response::new(plain(body)));
    *answer.status_mut() = status;
    set(&mut answer, CONTENT_TYPE, kind);
    set(&mut answer, CACHE_CONTROL, "no-store");
    *answer
}

/// A refusal also ends the connection: what follows on it may be the rest of a
/// body that we did not read.
fn refuse(status: StatusCode, message: impl Into<String>) -> Box<Answered> {
    let mut answer = Box::new(respond(status, "text/plain", message.into() + "\n"));
    set(&mut answer, CONNECTION, "close");
    answer
}

fn json_error(message: String) -> Box<Answered> {
    Box::new(respond(
        StatusCode::BAD_REQUEST,
        "application/json",
        message,
    ))
}

fn no_session() -> Box<Answered> {
    let fault = Fault::new(Fault::INVALID_REQUEST, "there is no such session");
    let message = fault.to_message(None::<&Id>);
    Box::new(respond(StatusCode::NOT_FOUND, "application/json", message))
}

fn not_allowed() -> Box<Answered> {
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

fn set(answer: &mut Answered, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}
