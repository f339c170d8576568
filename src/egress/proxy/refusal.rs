//! What the program is told when a request is not carried out.

use hyper::ext::ReasonPhrase;
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};

use super::super::dialer::DialError;
use super::super::report::Reason;
use super::EgressProxy;
use crate::loopback::{Body, full};
use crate::request::{Target, USUAL_PORTS};

/// A request that is not carried out.
pub enum Refusal {
    Denied(Target, Reason),
    Unreachable(Target, DialError),
    Bad(&'static str),
    /// Its answer may have a secret in it that cannot be found.
    Unsearched(Target),
}

impl EgressProxy {
    /// Notes a refusal, and says it.
    pub(super) fn refuse(&self, refusal: Refusal) -> Response<Body> {
        let (status, text) = match refusal {
            Refusal::Denied(target, reason) => {
                let grant = (reason == Reason::NotGranted).then(|| grant_for(&target));
                self.ledger.deny(&target.to_string(), grant, reason);
                let text = format!("{target} was refused: {}", reason.words());
                (StatusCode::FORBIDDEN, text)
            }
            Refusal::Unreachable(target, error) => {
                (StatusCode::BAD_GATEWAY, format!("{target}: {error}"))
            }
            Refusal::Unsearched(target) => {
                let text = "it sent a compressed answer or a part of one, which cannot be searched for secrets";
                (StatusCode::BAD_GATEWAY, format!("{target}: {text}"))
            }
            Refusal::Bad(text) => (StatusCode::BAD_REQUEST, text.to_owned()),
        };
        let mut response = Response::new(full(format!("hotcell: {text}\n")));
        *response.status_mut() = status;
        // Many clients show nothing else of an answer to CONNECT.
        if let Ok(phrase) = ReasonPhrase::try_from(text.into_bytes()) {
            response.extensions_mut().insert(phrase);
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

/// What to grant so that a host is allowed.
fn grant_for(target: &Target) -> String {
    match USUAL_PORTS.contains(&target.port) {
        true => target.host.to_string(),
        false => target.to_string(),
    }
}
