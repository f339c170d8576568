//! HTTP by hand: what is sent is what the test says, byte for byte.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{PATIENCE, Started, wait_until};

/// A server on a port of loopback.
pub struct Http {
    pub server: Started,
    pub address: SocketAddr,
    pub token: Option<String>,
}

/// What came back.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Http {
    pub fn start_as(arguments: &[&str], edit: impl FnOnce(&mut Command, &Path)) -> Self {
        let server = Started::new(arguments, edit);
        let mut url = None;
        let told = wait_until(PATIENCE, || {
            let log = server.log();
            // The configuration is the last thing that is said.
            url = log.ends_with("}\n").then(|| {
                let start = log.find("http://").expect("a url") + "http://".len();
                let end = log[start..].find("/mcp").expect("its path") + start;
                log[start..end].to_owned()
            });
            url.is_some()
        });
        assert!(told.is_some(), "the server did not start: {}", server.log());
        let address = url.and_then(|url| url.parse().ok()).expect("an address");
        let log = server.log();
        let token = log.split("Bearer ").nth(1);
        let token = token.map(|rest| rest.split('"').next().unwrap_or_default().to_owned());
        Self {
            server,
            address,
            token,
        }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the server takes connections");
        stream.set_nodelay(true).expect("a socket option");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a socket option");
        stream
            .set_write_timeout(Some(PATIENCE))
            .expect("a socket option");
        stream
    }

    /// The lines of headers that a good client sends, the token among them.
    pub fn usual(&self) -> Vec<String> {
        let mut headers = vec![
            format!("Host: {}", self.address),
            "Accept: application/json, text/event-stream".to_owned(),
            "Content-Type: application/json".to_owned(),
        ];
        headers.extend(
            self.token
                .iter()
                .map(|token| format!("Authorization: Bearer {token}")),
        );
        headers
    }

    /// The usual headers without those of this name.
    pub fn without(&self, name: &str) -> Vec<String> {
        let start = format!("{}:", name.to_ascii_lowercase());
        let mut headers = self.usual();
        headers.retain(|line| !line.to_ascii_lowercase().starts_with(&start));
        headers
    }

    /// Sends one request on a connection of its own.
    pub fn ask(&self, line: &str, headers: &[String], body: &[u8]) -> Answer {
        self.exchange(&request(line, headers, body))
    }

    /// Posts a message as a good client does.
    pub fn post(&self, message: &Value) -> Answer {
        let body = message.to_string();
        self.ask("POST /mcp HTTP/1.1", &self.usual(), body.as_bytes())
    }

    /// Calls a tool, and gives its result.
    pub fn call(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.post(&call(tool, arguments));
        answer.message()["result"].clone()
    }

    /// Sends bytes and reads until the server is done with them.
    pub fn exchange(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that has seen enough may close before it has taken all.
        let _ = stream.write_all(bytes);
        Answer::read(&mut stream)
    }

    /// An ordinary client comes and is served.
    pub fn serves(&self) {
        let answer = self.post(&json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" }));
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.message()["id"], 7);
    }
}

/// A `tools/call` with the id 1.
pub fn call(tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

/// A request that ends its connection.
pub fn request(line: &str, headers: &[String], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{line}\r\nConnection: close\r\n");
    for header in headers {
        head += &format!("{header}\r\n");
    }
    if !body.is_empty() {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    head += "\r\n";
    [head.as_bytes(), body].concat()
}

impl Answer {
    /// Reads one answer; status 0 if the connection was closed without one.
    pub fn read(stream: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        let mut buffer = [0; 1 << 16];
        loop {
            if let Some(answer) = Self::parse(&bytes, false) {
                return answer;
            }
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => bytes.extend_from_slice(&buffer[..read]),
                // A reset after a refusal: what came before it counts.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
                Err(error) => panic!("no answer: {error}; so far {bytes:?}"),
            }
        }
        let _ = stream.shutdown(Shutdown::Both);
        Self::parse(&bytes, true).unwrap_or_default()
    }

    /// The answer in these bytes, if it is whole or nothing more will come.
    fn parse(bytes: &[u8], ended: bool) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut answer = Self {
            status,
            headers,
            body: Vec::new(),
        };
        let rest = &bytes[end..];
        if let Some(length) = answer.header("content-length") {
            let length: usize = length.parse().ok()?;
            answer.body = rest.get(..length)?.to_vec();
        } else if answer.header("transfer-encoding").is_some() {
            answer.body = chunks(rest, ended)?;
        }
        Some(answer)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The JSON-RPC message that answers: the body, or the last event of a stream.
    pub fn message(&self) -> Value {
        let text = self.text();
        let last = text
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("data: "));
        super::protocol(last.unwrap_or(&text).as_bytes())
    }
}

/// The content of a chunked body, once its last chunk is there.
fn chunks(mut rest: &[u8], ended: bool) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|two| two == b"\r\n");
        let size = line.and_then(|end| {
            let size = std::str::from_utf8(&rest[..end]).ok()?;
            Some((usize::from_str_radix(size, 16).ok()?, end + 2))
        });
        match size {
            Some((0, _)) => return Some(body),
            Some((size, start)) if rest.len() >= start + size + 2 => {
                body.extend_from_slice(&rest[start..start + size]);
                rest = &rest[start + size + 2..];
            }
            _ => return ended.then_some(body),
        }
    }
}
