//! `fetch`: HTTP through the proxy of the cell, which also speaks TLS for us, or to the cell itself.
//!
//! Each request has a thread of its own, which sends, reads the whole answer and is done. A
//! program without a network has no proxy, and is told so in the words of node.

use std::cell::Cell;
use std::env;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use rquickjs::{Ctx, Function, Object, Result as JsResult, TypedArray};
use url::{Host, Url};

/// What a request needs of a thread's stack.
const STACK: usize = 256 << 10;
const HEADERS: usize = 200;

/// The requests of a program that are not answered yet.
pub struct Requests {
    arrived: Receiver<Arrived>,
    sender: Sender<Arrived>,
    pending: Cell<usize>,
}

/// A request that has come to its end.
pub struct Arrived {
    id: u32,
    answer: Result<Answer, String>,
}

struct Answer {
    status: u16,
    reason: String,
    headers: Vec<Vec<String>>,
    body: Vec<u8>,
}

struct Request {
    method: String,
    url: Url,
    headers: Vec<Vec<String>>,
    body: Option<Vec<u8>>,
}

impl Default for Requests {
    fn default() -> Self {
        let (sender, arrived) = mpsc::channel();
        Self {
            arrived,
            sender,
            pending: Cell::new(0),
        }
    }
}

impl Requests {
    pub fn are_pending(&self) -> bool {
        self.pending.get() > 0
    }

    /// Starts a request; its answer arrives under `id`.
    pub fn start(
        &self,
        id: u32,
        method: String,
        url: &str,
        headers: Vec<Vec<String>>,
        body: Option<Vec<u8>>,
    ) {
        self.pending.set(self.pending.get() + 1);
        let sender = self.sender.clone();
        let request = Url::parse(url).map(|url| Request {
            method,
            url,
            headers,
            body,
        });
        let send = move || {
            let answer = request
                .map_err(|error| error.to_string())
                .and_then(exchange);
            // Nobody waits for it if the program has ended.
            let _ = sender.send(Arrived { id, answer });
        };
        let started = thread::Builder::new().stack_size(STACK).spawn(send);
        if let Err(error) = started {
            let answer = Err(error.to_string());
            let _ = self.sender.send(Arrived { id, answer });
        }
    }

    /// Waits until an answer arrives: so many milliseconds, or as long as it takes if that is
    /// less than nothing.
    pub fn next(&self, wait: f64) -> Option<Arrived> {
        let arrived = match wait {
            wait if wait < 0.0 => self.arrived.recv().ok(),
            wait => {
                let wait = Duration::from_secs_f64(wait / 1000.0);
                self.arrived.recv_timeout(wait).ok()
            }
        }?;
        self.pending.set(self.pending.get() - 1);
        Some(arrived)
    }
}

impl Arrived {
    /// Hands it to the library that asked.
    pub fn deliver<'js>(self, ctx: &Ctx<'js>, control: &Object<'js>) -> JsResult<()> {
        let deliver: Function = control.get("fetched")?;
        match self.answer {
            Err(why) => deliver.call((self.id, why)),
            Ok(answer) => {
                let body = TypedArray::<u8>::new(ctx.clone(), answer.body)?;
                let none: Option<String> = None;
                deliver.call((
                    self.id,
                    none,
                    answer.status,
                    answer.reason,
                    answer.headers,
                    body,
                ))
            }
        }
    }
}

fn exchange(request: Request) -> Result<Answer, String> {
    let (mut stream, is_proxy) = connect(&request.url)?;
    let told = |error: io::Error| error.to_string();
    stream.write_all(&head(&request, is_proxy)).map_err(told)?;
    if let Some(body) = &request.body {
        stream.write_all(body).map_err(told)?;
    }
    let mut bytes = Vec::new();
    // What came before the line broke may be all there is to come.
    let broken = stream.read_to_end(&mut bytes).err();
    let answer = read(&bytes, request.method == "HEAD").ok_or_else(|| match broken {
        Some(error) => error.to_string(),
        None => "other side closed".to_owned(),
    })?;
    // The proxy's own refusals say the same in both places.
    if is_proxy && answer.body == format!("hotcell: {}\n", answer.reason).as_bytes() {
        return Err(answer.reason);
    }
    Ok(answer)
}

/// The line to the proxy, or to the cell itself.
fn connect(url: &Url) -> Result<(TcpStream, bool), String> {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(80);
    let is_own = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if is_own {
        if url.scheme() == "https" {
            return Err(format!("no TLS to {host}: it is the cell itself"));
        }
        let stream = TcpStream::connect((host.trim_matches(['[', ']']), port));
        return Ok((
            stream.map_err(|error| format!("connect {host}:{port}: {error}"))?,
            false,
        ));
    }
    let variable = format!("{}_proxy", url.scheme());
    let proxy = env::var(variable).ok().and_then(|it| Url::parse(&it).ok());
    let Some((proxy, port)) = proxy.as_ref().and_then(|it| it.host_str().zip(it.port())) else {
        return Err(format!("getaddrinfo EAI_AGAIN {host}"));
    };
    let stream = TcpStream::connect((proxy, port));
    Ok((
        stream.map_err(|error| format!("connect {proxy}:{port}: {error}"))?,
        true,
    ))
}

fn head(request: &Request, is_proxy: bool) -> Vec<u8> {
    let url = &request.url;
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let target = match is_proxy {
        true => format!("{}://{host}{path}", url.scheme()),
        false => path.to_owned(),
    };
    let mut head = format!(
        "{} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n",
        request.method
    );
    for header in &request.headers {
        head += &format!("{}\r\n", header.join(": "));
    }
    if let Some(body) = &request.body {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    // A character of a header is a byte.
    let text = head + "\r\n";
    text.chars().map(|character| character as u8).collect()
}

/// An answer, if that is a whole one.
fn read(mut bytes: &[u8], is_head: bool) -> Option<Answer> {
    loop {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut answer = httparse::Response::new(&mut headers);
        let Ok(httparse::Status::Complete(length)) = answer.parse(bytes) else {
            return None;
        };
        bytes = &bytes[length..];
        let status = answer.code?;
        if (100..200).contains(&status) {
            continue;
        }
        let text = |value: &[u8]| value.iter().map(|byte| char::from(*byte)).collect();
        let find = |name: &str| {
            let named = |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
            let found = answer.headers.iter().find(named)?;
            Some(
                String::from_utf8_lossy(found.value)
                    .trim()
                    .to_ascii_lowercase(),
            )
        };
        let body = if is_head || status == 204 || status == 304 {
            Vec::new()
        } else if find("transfer-encoding").is_some_and(|it| it.ends_with("chunked")) {
            unchunk(bytes)?
        } else if let Some(length) = find("content-length") {
            bytes.get(..length.parse().ok()?)?.to_vec()
        } else {
            bytes.to_vec()
        };
        let headers = answer.headers.iter();
        return Some(Answer {
            status,
            reason: answer.reason.unwrap_or_default().to_owned(),
            headers: headers
                .map(|header| vec![header.name.to_owned(), text(header.value)])
                .collect(),
            body,
        });
    }
}

fn unchunk(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let Ok(httparse::Status::Complete((start, size))) = httparse::parse_chunk_size(bytes)
        else {
            return None;
        };
        if size == 0 {
            return Some(body);
        }
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        body.extend(bytes.get(start..end)?);
        bytes = bytes.get(end + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_whole_or_not_at_all() {
        let body = |text: &str| read(text.as_bytes(), false).map(|it| it.body);
        let whole = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(
            body("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
            whole("hi")
        );
        assert_eq!(body("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi"), None);
        assert_eq!(body("HTTP/1.0 200 OK\r\n\r\nhi"), whole("hi"));
        assert_eq!(body("HTTP/1.1 204 None\r\n\r\n"), whole(""));
        let chunks =
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        assert_eq!(
            body(&format!("{chunks}2\r\nhi\r\n1;x=y\r\n!\r\n0\r\n\r\n")),
            whole("hi!")
        );
        for broken in [
            "2\r\nh",
            "2\r\nhi\r\n",
            "z\r\n",
            "fffffffffffffff\r\nhi",
            "",
        ] {
            assert_eq!(body(&format!("{chunks}{broken}")), None, "{broken:?}");
        }
        assert_eq!(body("nonsense"), None);
    }
}
