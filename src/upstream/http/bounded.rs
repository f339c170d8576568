//! The HTTP of rmcp's transport, with a bound on each answer. rmcp's own client for reqwest reads a plain answer to its end, however long
//! that is; what it does beside that is done here too.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{HeaderName, HeaderValue};
use reqwest::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::SseStream;

use super::errors::TOO_LONG;
use crate::memory_budget::json_values;
use crate::upstream::connection::{LONGEST, MOST_VALUES};

/// What a server may say about a request that it refuses.
const LONGEST_REFUSAL: usize = 64 << 10;
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
const SESSION: &str = "mcp-session-id";

type Asked<T> = Result<T, StreamableHttpError<reqwest::Error>>;
type Headers = HashMap<HeaderName, HeaderValue>;

#[derive(Clone)]
pub struct Bounded(pub reqwest::Client);

impl StreamableHttpClient for Bounded {
    type Error = reqwest::Error;

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Asked<BoxedSseResponse> {
        let (client, most) = (&self.0, LONGEST as usize);
        client
            .get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, most)
            .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Asked<()> {
        self.0.delete_session(uri, session, token, headers).await
    }

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Asked<StreamableHttpPostResponse> {
        let mut request = self
            .0
            .post(&*uri)
            .header(ACCEPT, format!("{EVENTS}, {JSON}"))
            .header(CONTENT_TYPE, JSON)
            .headers(headers.into_iter().collect());
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(session) = &session {
            request = request.header(SESSION, &**session);
        }
        let response = request.body(serde_json::to_vec(&message)?).send().await?;
        answer(response, &message, session.is_some()).await
    }
}

async fn answer(
    response: Response,
    message: &ClientJsonRpcMessage,
    in_session: bool,
) -> Asked<StreamableHttpPostResponse> {
    let status = response.status();
    let header = |name: &str| {
        let value = response.headers().get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    let (kind, session) = (header(CONTENT_TYPE.as_str()), header(SESSION));
    let is = |wanted: &str| kind.as_deref().is_some_and(|it| it.starts_with(wanted));
    match (status, header(WWW_AUTHENTICATE.as_str())) {
        (StatusCode::UNAUTHORIZED, Some(challenge)) => {
            let error = AuthRequiredError::new(challenge);
            return Err(StreamableHttpError::AuthRequired(error));
        }
        (StatusCode::FORBIDDEN, Some(challenge)) => {
            let error = InsufficientScopeError::new(challenge, None);
            return Err(StreamableHttpError::InsufficientScope(error));
        }
        (StatusCode::ACCEPTED | StatusCode::NO_CONTENT, _) => {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        (StatusCode::NOT_FOUND, _) if in_session => {
            return Err(StreamableHttpError::SessionExpired);
        }
        (status, _) if !status.is_success() => {
            return refusal(response, message, in_session, is(JSON)).await;
        }
        _ => {}
    }
    let wants_answer = matches!(message, ClientJsonRpcMessage::Request(_));
    if !wants_answer && response.content_length() == Some(0) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    if is(EVENTS) {
        let events = SseStream::new(BoundedEvents::new(response));
        return Ok(StreamableHttpPostResponse::Sse(Box::pin(events), session));
    }
    if !is(JSON) {
        return Err(StreamableHttpError::UnexpectedContentType(kind));
    }
    let Some(body) = read(response, LONGEST as usize).await? else {
        return Err(unexpected(TOO_LONG.to_owned()));
    };
    if json_values(&body) > MOST_VALUES {
        return Err(unexpected(TOO_LONG.to_owned()));
    }
    match serde_json::from_slice(&body) {
        Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
        Err(_) if !wants_answer => Ok(StreamableHttpPostResponse::Accepted),
        Err(error) => Err(unexpected(error.to_string())),
    }
}

/// A refusal may be a message of the protocol.
async fn refusal(
    response: Response,
    message: &ClientJsonRpcMessage,
    in_session: bool,
    is_json: bool,
) -> Asked<StreamableHttpPostResponse> {
    let status = response.status();
    let is_login = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let body = read(response, LONGEST_REFUSAL).await?.unwrap_or_default();
    let said = match serde_json::from_slice(&body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    if let ClientJsonRpcMessage::Request(asked) = message
        && let ClientRequest::DiscoverRequest(_) = asked.request
        && status.is_client_error()
        && !in_session
        && !is_login
    {
        // A server of the older era: the answer gets the id that it is waited for by.
        let error = said.map(|it| it.error).unwrap_or_else(|| {
            ErrorData::invalid_request(format!("server/discover rejected with {status}"), None)
        });
        let answer = ServerJsonRpcMessage::error(error, Some(asked.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    match said {
        Some(error) if is_json && !is_login => {
            let answer = ServerJsonRpcMessage::Error(error);
            Ok(StreamableHttpPostResponse::Json(answer, None))
        }
        _ if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            Err(HttpStatusError::new(status.as_u16(), None).into())
        }
        _ => Err(unexpected(format!("HTTP {status}"))),
    }
}

fn unexpected(why: String) -> StreamableHttpError<reqwest::Error> {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(why))
}

/// A whole body; none if it is longer. Then the rest is not read.
async fn read(mut response: Response, most: usize) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > most {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body))
}

/// A stream of events, none of which is longer than a message may be.
struct BoundedEvents {
    body: reqwest::Body,
    /// Bytes since the last empty line.
    length: usize,
    is_line_empty: bool,
    /// A line feed that follows belongs to the same end of a line.
    was_return: bool,
}

impl BoundedEvents {
    fn new(response: Response) -> Self {
        Self {
            body: response.into(),
            length: 0,
            is_line_empty: true,
            was_return: false,
        }
    }

    fn fits(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            let was_return = std::mem::replace(&mut self.was_return, *byte == b'\r');
            match byte {
                b'\n' if was_return => {}
                b'\n' | b'\r' if self.is_line_empty => self.length = 0,
                b'\n' | b'\r' => self.is_line_empty = true,
                _ => {
                    self.is_line_empty = false;
                    self.length += 1;
                }
            }
        }
        self.length <= LONGEST as usize
    }
}

impl Body for BoundedEvents {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(error))) => {
                return Poll::Ready(Some(Err(io::Error::other(error))));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => return Poll::Pending,
        };
        Poll::Ready(Some(match frame.data_ref() {
            Some(bytes) if !self.fits(&bytes.clone()) => Err(io::Error::other(TOO_LONG)),
            _ => Ok(frame),
        }))
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_line_ends_an_event_however_lines_end() {
        for text in ["data: abc\n\n", "data: abc\r\n\r\n", "data: abc\r\r"] {
            let mut events = BoundedEvents {
                body: reqwest::Body::from(""),
                length: 0,
                is_line_empty: true,
                was_return: false,
            };
            for _ in 0..3 {
                assert!(events.fits(text.as_bytes()));
                assert_eq!(events.length, 0, "{text:?}");
            }
            assert!(events.fits(b"data: open\r\ndata: open"));
            assert_eq!(events.length, 20, "{text:?}");
        }
    }
}
