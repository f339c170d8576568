//! HTTP/1 as programs in sandboxes are answered: one server configuration, and services that answer request by request.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};

use super::{Connection, Service};

/// How long a request's head may take to arrive, from when one could begin.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// The bytes and the header lines of a head.
pub const HEAD_BYTES: usize = 64 << 10;
pub const HEAD_LINES: usize = 200;

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// A body that is all there.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

/// The server's side of HTTP/1.
pub fn http1() -> Builder {
    http1_within(HEAD_TIME)
}

pub(super) fn http1_within(head_time: Duration) -> Builder {
    let mut server = Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(head_time)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEAD_LINES);
    server
}

/// Who answers requests one by one. Every such is a [`Service`].
pub trait Http: Send + Sync + 'static {
    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Pin<Box<dyn Future<Output = Response<Body>> + Send>>;
}

impl<T: Http> Service for T {
    fn attend(self: Arc<Self>, connection: Connection) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let answer = service_fn(|request| {
                let answer = self.clone().answer(request);
                async { Ok::<_, Infallible>(answer.await) }
            });
            // A program that hangs up has its reasons.
            let _ = http1()
                .serve_connection(TokioIo::new(connection), answer)
                .await;
        })
    }
}
