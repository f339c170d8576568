//! The endpoint: each request is checked for who sent it, read, and handed to the MCP server.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{HeaderMap, Method, Request as HttpRequest, StatusCode};
use serde_json::Value;

use super::Settings;
use super::body::{Accepts, check_content, read_body};
use super::client::Client;
use super::connections::Connection;
use super::events::Work;
use super::headers;
use super::page;
use super::responses::{
    Answered, json_error, no_session, not_allowed, refuse, respond, set, unread,
};
use super::sessions::Sessions;
use super::token::Failures;
use crate::caller::Caller;
use crate::mcp::{
    Fault, MODERN, Message, Peer, Request, Revision, Server, Session, Transport, VERSION_KEY,
    is_batch, parse, parse_batch, read,
};
use crate::memory_budget::Hold;

pub struct Endpoint {
    server: Arc<Server>,
    settings: Settings,
    port: u16,
    sessions: Sessions,
    failures: Failures,
}

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
        Ok(answered.unwrap_or_else(|refused| {
            tracing::debug!(%from, status = refused.status().as_u16(), "request refused");
            *refused
        }))
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
                "this `Host` or `Origin` is not allowed",
            ));
        }
        if request.uri().path() == "/healthz" && request.method() == Method::GET {
            return Ok(respond(StatusCode::OK, "text/plain", "ok\n"));
        }
        let is_read = [Method::GET, Method::HEAD].contains(request.method());
        if self.settings.page
            && is_read
            && let Some(file) = page::find(request.uri().path())
        {
            return Ok(file);
        }
        let caller = self.authorize(headers, from)?;
        if request.uri().path() != "/mcp" {
            return Err(refuse(StatusCode::NOT_FOUND, "there is only /mcp"));
        }
        match *request.method() {
            Method::POST => self.post(request, caller, connection).await,
            Method::DELETE => self.delete(headers),
            _ => Err(not_allowed()),
        }
    }

    /// Who sent these headers, if they may use the server.
    fn authorize(&self, headers: &HeaderMap, from: IpAddr) -> Result<Caller, Box<Answered>> {
        let Some(token) = &self.settings.token else {
            return Ok(Caller::anonymous());
        };
        // The right token passes whatever strangers on the same address have tried.
        if token.is_borne_by(headers) {
            return Ok(Caller::token());
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
        caller: Caller,
        connection: &Connection,
    ) -> Result<Answered, Box<Answered>> {
        let (head, body) = request.into_parts();
        let headers = head.headers;
        let accepts = Accepts::read(&headers)?;
        check_content(&headers)?;
        let (body, hold) = read_body(&headers, body).await?;
        let client = Client {
            caller,
            transport: transport(&headers),
            accepts,
            // A known client with a whole request: not one to be sent away for another.
            at_work: connection.at_work(),
        };
        if is_batch(&body) {
            return self.batch(&headers, (body, hold), client).await;
        }
        let (message, hold) = read(body, hold, parse).await.map_err(unread)?;
        let request = match message {
            Message::Request(request) => request,
            other => {
                let session = self.session(&headers)?.unwrap_or_default();
                self.server.receive(other, &session);
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
        let server = self.server.clone();
        let work = |peer: Peer| -> Work {
            Box::pin(async move {
                let _held = hold;
                server.answer(request, &peer).await
            })
        };
        let mut answer = client.respond(session.clone(), work).await;
        if opens && self.settings.sessions && session.revision().is_some() {
            let id = self.sessions.add(session);
            set(&mut answer, HeaderName::from_static(headers::SESSION), &id);
        }
        Ok(answer)
    }

    /// Several messages in one body, which one old revision allows.
    async fn batch(
        &self,
        headers: &HeaderMap,
        (body, hold): (Vec<u8>, Hold),
        client: Client,
    ) -> Result<Answered, Box<Answered>> {
        let session = self.session(headers)?.unwrap_or_default();
        if !client.transport.allows_batches(&session) {
            let fault = Fault::new(Fault::INVALID_REQUEST, "this revision has no batches");
            return Err(json_error(fault.to_message(None)));
        }
        let (messages, hold) = read(body, hold, parse_batch).await.map_err(unread)?;
        let server = self.server.clone();
        let work = |peer: Peer| -> Work {
            Box::pin(async move {
                let _held = hold;
                server.answer_all(messages, &peer).await
            })
        };
        Ok(client.respond(session, work).await)
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
                    let message = format!("protocol version {version:?} is not supported");
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
}

enum Version {
    Modern,
    Legacy,
}

fn transport(headers: &HeaderMap) -> Transport {
    let version = headers
        .get(headers::VERSION)
        .and_then(|value| value.to_str().ok());
    Transport::Http {
        version: version.map(|text| text.trim().to_owned()),
    }
}
