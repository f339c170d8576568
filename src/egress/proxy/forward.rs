//! One plain request on its way to the host it is for, and the answer back.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body_util::BodyExt;
use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::rt::{Read, Write};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;

use super::super::dialer::DialError;
use super::super::report::Ledger;
use super::inject::inject;
use super::{EgressProxy, Refusal, Scheme};
use crate::loopback::{Body, HEAD_BYTES, HEAD_LINES};
use crate::request::Target;
use crate::secret::{Redactor, Secret};

/// Headers that belong to a connection, not to what goes through it.
const OF_THE_CONNECTION: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl EgressProxy {
    /// Sends a request on over a connection of its own: every one is checked and
    /// dialled anew, however many came through one connection of the program.
    pub(super) async fn forward(
        self: &Arc<Self>,
        request: Request<Incoming>,
        target: Target,
        scheme: Scheme,
    ) -> Result<Response<Body>, Refusal> {
        let stream = self.dial(&target).await?;
        let (mut parts, body) = request.into_parts();
        parts.uri = origin_form(&parts.uri);
        strip(&mut parts.headers);
        let host = HeaderValue::try_from(target.authority(scheme.port()));
        let host = host.map_err(|_| Refusal::Bad("this is not a valid host"))?;
        parts.headers.insert(header::HOST, host);
        let bound: Vec<&Secret> = self.secrets_for(&target, scheme).collect();
        // What comes back is searched for all of them: a host may know more than its own.
        let scrubber = match bound.is_empty() {
            true => None,
            false => {
                inject(&mut parts.headers, &mut parts.uri, &bound);
                Redactor::new(&self.egress.secrets)
            }
        };
        let body = Counted {
            inner: body,
            proxy: self.clone(),
            direction: Direction::Out,
            scrubber: None,
            _driver: None,
        };
        let request = Request::from_parts(parts, body);
        let sent = match scheme {
            Scheme::Http => send(TokioIo::new(stream), request).await,
            Scheme::Https => {
                let stream = self.tls.connect(&target, stream).await;
                let stream = stream.map_err(|error| unreachable(&target, error))?;
                send(TokioIo::new(stream), request).await
            }
        };
        let (response, driver) =
            sent.map_err(|error| unreachable(&target, io::Error::other(error)))?;
        let (mut parts, body) = response.into_parts();
        // SECURITY: a host could say a secret in any of these, and is not to be believed about which of them it does.
        let is_part = parts.status == StatusCode::PARTIAL_CONTENT;
        if scrubber.is_some() && (is_part || is_coded(&parts.headers)) {
            return Err(Refusal::Unsearched(target));
        }
        strip(&mut parts.headers);
        if let Some(scrubber) = &scrubber {
            parts.extensions.clear();
            let names = parts
                .headers
                .keys()
                .filter(|it| scrubber.is_in_name(it.as_str()));
            let names: Vec<HeaderName> = names.cloned().collect();
            for name in names {
                parts.headers.remove(name);
            }
            // Its length changes with what is taken out of it.
            parts.headers.remove(header::CONTENT_LENGTH);
            for value in parts.headers.values_mut() {
                let clean = scrubber.clean(value.as_bytes());
                if let Ok(clean) = HeaderValue::from_bytes(&clean) {
                    *value = clean;
                }
            }
        }
        let body = Counted {
            inner: body,
            proxy: self.clone(),
            direction: Direction::In,
            scrubber,
            _driver: Some(driver),
        };
        Ok(Response::from_parts(parts, body.boxed_unsync()))
    }
}

async fn send(
    io: impl Read + Write + Unpin + Send + 'static,
    request: Request<Counted>,
) -> hyper::Result<(Response<Incoming>, Driver)> {
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEAD_LINES)
        .preserve_header_case(true)
        .handshake(io)
        .await?;
    let driver = Driver(tokio::spawn(async move {
        // What breaks it, the answer tells.
        let _ = connection.await;
    }));
    Ok((sender.send_request(request).await?, driver))
}

fn unreachable(target: &Target, error: io::Error) -> Refusal {
    Refusal::Unreachable(target.clone(), DialError::Connect(error))
}

/// The path alone, as one asks the host itself.
fn origin_form(uri: &Uri) -> Uri {
    let path = uri.path_and_query().cloned();
    path.map(Uri::from).unwrap_or_default()
}

/// Whether a body is in a form that cannot be searched.
fn is_coded(headers: &HeaderMap) -> bool {
    let codings = [header::CONTENT_ENCODING, header::TRANSFER_ENCODING];
    let values = codings.iter().flat_map(|name| headers.get_all(name));
    values
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .any(|coding| {
            let plain = ["", "identity", "chunked"].map(str::as_bytes);
            !plain.iter().any(|it| coding.eq_ignore_ascii_case(it))
        })
}

/// Takes out what is between us and one neighbour.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // How long the body is must stay what hyper has read.
        .filter(|name| name != header::CONTENT_LENGTH)
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in OF_THE_CONNECTION {
        headers.remove(name);
    }
}

/// A connection at work, which ends with its owner.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A body whose bytes are counted as they pass, and cleaned of secrets if it may have any.
pub struct Counted {
    inner: Incoming,
    proxy: Arc<EgressProxy>,
    direction: Direction,
    scrubber: Option<Redactor>,
    /// What feeds it.
    _driver: Option<Driver>,
}

#[derive(Clone, Copy)]
enum Direction {
    In,
    Out,
}

impl Counted {
    fn fits(&self, bytes: usize) -> bool {
        let Ledger { sent, received, .. } = &self.proxy.ledger;
        let count = match self.direction {
            Direction::In => received,
            Direction::Out => sent,
        };
        count.add(bytes, self.proxy.egress.transfer)
    }
}

impl hyper::body::Body for Counted {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = Pin::new(&mut self.inner).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
            && !self.fits(data.len())
        {
            return Poll::Ready(Some(Err("the run has reached its transfer limit".into())));
        }
        let Some(scrubber) = &mut self.scrubber else {
            return frame.map_err(Into::into);
        };
        match frame {
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(Ok(match frame.into_data() {
                Ok(data) => Frame::data(scrubber.feed(&data).into()),
                // Trailers could hold anything, and hardly anybody reads them.
                Err(_) => Frame::data(Bytes::new()),
            }))),
            Poll::Ready(None) => {
                let rest = scrubber.finish();
                self.scrubber = None;
                Poll::Ready((!rest.is_empty()).then(|| Ok(Frame::data(rest.into()))))
            }
            other => other.map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.scrubber.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.scrubber {
            Some(_) => SizeHint::default(),
            None => self.inner.size_hint(),
        }
    }
}
