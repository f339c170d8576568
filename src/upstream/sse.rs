//! A server at an address, over the transport of 2024: one stream of events brings all that it says, and tells
//! where ours is posted to. rmcp does not have it, and some servers have nothing else.

use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::connection::{Connection, LONGEST, Listener};
use super::http::{client, headers, unreachable};
use super::link::News;
use crate::config::Remote;

/// Messages on their way to the server at a time.
const MOST: usize = 32;

/// Opens the stream and shakes hands.
pub async fn open(remote: &Remote, news: News) -> Result<Connection, String> {
    let client = client().await?;
    let headers: HeaderMap = headers(remote).into_iter().collect();
    let request = client.get(remote.url.clone()).headers(headers.clone());
    let response = request.header(ACCEPT, "text/event-stream").send().await;
    let response = response.map_err(|error| unreachable(&error))?;
    let response = response
        .error_for_status()
        .map_err(|error| unreachable(&error))?;
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|it| it.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("text/event-stream") {
        return Err("it does not speak the protocol".to_owned());
    }
    let (found, endpoint) = oneshot::channel();
    let base = remote.url.clone();
    let (ready, go) = oneshot::channel();
    let connection = Connection::new(news, |listener, messages, tasks| {
        let stream = Stream {
            base,
            found: Some(found),
            listener,
        };
        let post = async move {
            match go.await {
                Ok(to) => post(client, to, headers, messages).await,
                Err(_) => std::future::pending().await,
            }
        };
        // One without the other is nothing: whoever waits for an answer is told.
        tasks.spawn(async move {
            tokio::select! {
                () = stream.follow(response) => {}
                () = post => {}
            }
        });
    });
    let endpoint = endpoint.await;
    let endpoint = endpoint.map_err(|_| "it does not speak the protocol".to_owned())?;
    let _ = ready.send(endpoint);
    connection.meet().await?;
    Ok(connection)
}

/// Posts what we say, until something is refused. Some servers answer a POST only when its call has ended, so none waits for another.
async fn post(
    client: reqwest::Client,
    to: Url,
    headers: HeaderMap,
    mut messages: mpsc::Receiver<String>,
) {
    let mut sending = JoinSet::new();
    loop {
        tokio::select! {
            Some(sent) = sending.join_next() => match sent {
                Ok(true) => {}
                _ => return,
            },
            message = messages.recv(), if sending.len() < MOST => {
                let Some(message) = message else { return };
                let request = client.post(to.clone()).headers(headers.clone());
                let request = request.header(CONTENT_TYPE, "application/json");
                let send = request.body(message).send();
                sending.spawn(async move {
                    send.await.is_ok_and(|response| response.status().is_success())
                });
            }
        }
    }
}

/// What comes from the server.
struct Stream {
    base: Url,
    /// Told where to post to.
    found: Option<oneshot::Sender<Url>>,
    listener: Listener,
}

impl Stream {
    async fn follow(mut self, mut response: reqwest::Response) {
        let mut events = Events::default();
        while let Ok(Some(bytes)) = response.chunk().await {
            for (name, data) in events.feed(&bytes) {
                match name.as_str() {
                    "endpoint" => self.endpoint(&data),
                    _ if !self.listener.read(data.into_bytes()).await => return,
                    _ => {}
                }
            }
            if events.is_too_long() {
                return;
            }
        }
    }

    /// SECURITY: our headers, with their tokens, go nowhere but to the origin that they are for.
    fn endpoint(&mut self, data: &str) {
        let Ok(url) = self.base.join(data.trim()) else {
            return;
        };
        if url.origin() == self.base.origin()
            && let Some(found) = self.found.take()
        {
            let _ = found.send(url);
        }
    }
}

/// Events as they arrive, in pieces.
#[derive(Default)]
struct Events {
    rest: Vec<u8>,
    name: String,
    data: String,
}

impl Events {
    /// The events that are whole now: their names and data.
    fn feed(&mut self, bytes: &[u8]) -> Vec<(String, String)> {
        let mut whole = Vec::new();
        let seen = self.rest.len();
        self.rest.extend_from_slice(bytes);
        let mut start = 0;
        let mut from = seen;
        while let Some(at) = self.rest[from..].iter().position(|byte| *byte == b'\n') {
            let end = from + at;
            let line = String::from_utf8_lossy(&self.rest[start..end]).into_owned();
            (start, from) = (end + 1, end + 1);
            whole.extend(self.line(line.trim_end_matches('\r')));
        }
        self.rest.drain(..start);
        whole
    }

    fn line(&mut self, line: &str) -> Option<(String, String)> {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" if line.is_empty() => {
                let event = (
                    std::mem::take(&mut self.name),
                    std::mem::take(&mut self.data),
                );
                return (!event.1.is_empty()).then_some(event);
            }
            "event" => self.name = value.chars().take(64).collect(),
            "data" => {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data += value;
            }
            _ => {}
        }
        None
    }

    fn is_too_long(&self) -> bool {
        (self.rest.len() + self.data.len()) as u64 > LONGEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_whole_however_they_arrive() {
        let text = "event: endpoint\r\ndata: /post?id=1\r\n\r\n: ping\n\ndata:{\"a\":\ndata: 1}\n\nid: 7\ndata: é\n\ndata: unfinished";
        let expected = [("endpoint", "/post?id=1"), ("", "{\"a\":\n1}"), ("", "é")];
        for size in [1, 2, 3, 7, 1000] {
            let mut events = Events::default();
            let pieces = text.as_bytes().chunks(size);
            let whole: Vec<_> = pieces.flat_map(|piece| events.feed(piece)).collect();
            let whole: Vec<_> = whole
                .iter()
                .map(|it| (it.0.as_str(), it.1.as_str()))
                .collect();
            assert_eq!(whole, expected, "{size}");
        }
    }
}
