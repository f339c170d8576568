//! The transport over HTTP, by bytes on a socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{PATIENCE, SOON, hello, marker, sleeper, wait_until_running};

/// A server with a state folder of its own.
pub struct Server {
    child: Child,
    pub port: u16,
    state: tempfile::TempDir,
}

impl Server {
    pub fn start(flags: &[&str]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_hotcell"))
            .args(["serve", "--http", "127.0.0.1:0"])
            .args(flags)
            .env("XDG_STATE_HOME", state.path())
            .env("XDG_DATA_HOME", state.path())
            .env_remove("HOTCELL_TOKEN")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stderr.read_line(&mut first).unwrap();
        // Whatever else it says must not fill a pipe.
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        let port = first
            .trim()
            .strip_suffix("/mcp")
            .and_then(|url| url.rsplit_once(':'))
            .and_then(|(_, port)| port.parse().ok())
            .unwrap_or_else(|| panic!("no address in {first:?}"));
        Self { child, port, state }
    }

    pub fn token(&self) -> String {
        let file = self.state.path().join("hotcell/token");
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::read_to_string(file).unwrap().trim().to_owned()
    }

    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reader {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\ncontent-length: {}\r\n",
            body.len()
        );
        if !headers.iter().any(|(name, _)| *name == "host") {
            head += "host: localhost\r\n";
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        (&stream)
            .write_all(format!("{head}\r\n{body}").as_bytes())
            .unwrap();
        Reader::new(stream)
    }

    /// Posts a message and gives status and body.
    pub fn post(&self, headers: &[(&str, &str)], message: &Value) -> (u16, Value) {
        let mut all = vec![("content-type", "application/json"), ("accept", BOTH)];
        all.extend(headers);
        let mut reader = self.send("POST", "/mcp", &all, &message.to_string());
        let body = reader.body();
        (
            reader.status,
            serde_json::from_str(&body).unwrap_or_default(),
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const BOTH: &str = "application/json, text/event-stream";

/// An answer, as far as it has come.
pub struct Reader {
    stream: BufReader<TcpStream>,
    pub status: u16,
    headers: Vec<(String, String)>,
}

impl Reader {
    fn new(stream: TcpStream) -> Self {
        let mut reader = Self {
            stream: BufReader::new(stream),
            status: 0,
            headers: Vec::new(),
        };
        let first = reader.line();
        reader.status = first
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .unwrap_or(0);
        loop {
            let line = reader.line();
            match line.split_once(": ") {
                Some((name, value)) => reader.headers.push((name.to_owned(), value.to_owned())),
                None => return reader,
            }
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn body(&mut self) -> String {
        let length = self
            .header("content-length")
            .map_or(0, |text| text.parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        String::from_utf8(body).unwrap()
    }

    /// The next message of an event stream.
    fn event(&mut self) -> Value {
        loop {
            if let Some(data) = self.line().strip_prefix("data: ") {
                return serde_json::from_str(data).unwrap();
            }
        }
    }
}

pub fn call(id: u64, arguments: Value) -> Value {
    let params = json!({ "name": "run", "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

#[test]
fn only_the_bearer_of_the_token_gets_in() {
    let server = Server::start(&[]);
    let bearer = format!("Bearer {}", server.token());
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    assert_eq!(server.post(&[("authorization", &bearer)], &ping).0, 200);
    assert_eq!(server.post(&[], &ping).0, 401);
    assert_eq!(
        server.post(&[("authorization", "Bearer wrong")], &ping).0,
        401
    );
    let in_the_query = format!("/mcp?token={}", server.token());
    let json = ("content-type", "application/json");
    let reader = server.send("POST", &in_the_query, &[json], &ping.to_string());
    assert_eq!(reader.status, 401);
    assert_eq!(reader.header("www-authenticate"), Some("Bearer"));
    for (method, path) in [
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("POST", "/"),
        ("GET", "/page"),
        ("GET", "/x"),
    ] {
        assert_eq!(
            server.send(method, path, &[], "").status,
            401,
            "{method} {path}"
        );
    }
    assert_eq!(server.send("GET", "/healthz", &[], "").status, 200);
}

#[test]
fn a_foreign_host_or_origin_is_refused_even_with_the_token() {
    let server = Server::start(&[]);
    let bearer = format!("Bearer {}", server.token());
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let token = ("authorization", bearer.as_str());
    for (name, value) in [
        ("host", "evil.test"),
        ("host", "localhost.evil.test"),
        ("origin", "http://evil.test"),
        ("origin", "null"),
    ] {
        let (status, _) = server.post(&[token, (name, value)], &ping);
        assert_eq!(status, 403, "{name}: {value}");
    }
    let own = format!("http://localhost:{}", server.port);
    assert_eq!(server.post(&[token, ("origin", &own)], &ping).0, 200);
}

#[test]
fn what_is_no_json_or_too_much_of_it_is_not_read() {
    let server = Server::start(&["--no-auth"]);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let status =
        |headers: &[(&str, &str)], body: &str| server.send("POST", "/mcp", headers, body).status;
    assert_eq!(status(&[("content-type", "text/plain")], &body), 415);
    assert_eq!(status(&[], &body), 415);
    let json = ("content-type", "application/json");
    assert_eq!(status(&[json, ("content-encoding", "gzip")], &body), 415);
    assert_eq!(status(&[json, ("accept", "text/html")], &body), 406);
    assert_eq!(status(&[json, ("x", &"y".repeat(20 << 10))], &body), 431);
    assert_eq!(status(&[json], "not json"), 400);
    assert_eq!(status(&[json], &body), 200);
    let announced = [json, ("content-length", "99999999999")];
    let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\n{}: {}\r\n{}: {}\r\n\r\n",
        announced[0].0, announced[0].1, announced[1].0, announced[1].1
    );
    (&stream).write_all(head.as_bytes()).unwrap();
    assert_eq!(Reader::new(stream).status, 413);
    assert_eq!(server.send("GET", "/mcp", &[], "").status, 405);
    assert_eq!(server.send("PUT", "/mcp", &[], "").status, 405);
    assert_eq!(server.send("POST", "/mcp/", &[json], &body).status, 404);
}

#[test]
fn a_legacy_session_is_opened_used_and_ended() {
    let server = Server::start(&["--no-auth"]);
    let opening =
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello("2025-06-18") });
    let headers = [("content-type", "application/json"), ("accept", BOTH)];
    let mut reader = server.send("POST", "/mcp", &headers, &opening.to_string());
    let session = reader.header("mcp-session-id").unwrap().to_owned();
    assert!(reader.body().contains("2025-06-18"));
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let with = [("mcp-session-id", session.as_str())];
    assert_eq!(server.post(&with, &ping).0, 200);
    assert_eq!(server.post(&[("mcp-session-id", "guessed")], &ping).0, 404);

    // A cancellation finds its request by the session.
    let marker = marker("http-cancel");
    let mut all = headers.to_vec();
    all.extend(with);
    std::thread::scope(|scope| {
        let body = call(7, sleeper(&marker)).to_string();
        let (server, all) = (&server, &all);
        let waiting = scope.spawn(move || server.send("POST", "/mcp", all, &body).status);
        wait_until_running(&marker, true);
        let cancel = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 },
        });
        assert_eq!(server.post(&[], &cancel).0, 202);
        std::thread::sleep(Duration::from_millis(100));
        assert!(
            super::client::is_running(&marker),
            "another client's cancellation counted"
        );
        assert_eq!(server.post(&with, &cancel).0, 202);
        wait_until_running(&marker, false);
        assert_eq!(waiting.join().unwrap(), 204);
    });
    assert_eq!(server.send("DELETE", "/mcp", &with, "").status, 204);
    assert_eq!(server.post(&with, &ping).0, 404);
}

#[test]
fn a_client_that_closes_its_connection_ends_its_program() {
    let server = Server::start(&["--no-auth"]);
    let headers = [("content-type", "application/json"), ("accept", BOTH)];
    // Before anything was answered.
    let marker = marker("http-close");
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let body = call(1, sleeper(&marker)).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
    wait_until_running(&marker, true);
    drop(stream);
    let gone = wait_until_running(&marker, false);
    assert!(gone < SOON, "{gone:?}");

    // In the middle of a stream of events.
    let mut message = call(2, sleeper(&marker));
    message["params"]["_meta"] = json!({ "progressToken": 1 });
    let mut reader = server.send("POST", "/mcp", &headers, &message.to_string());
    assert_eq!(reader.header("content-type"), Some("text/event-stream"));
    assert_eq!(reader.event()["params"]["message"], "up\n");
    wait_until_running(&marker, true);
    drop(reader);
    let gone = wait_until_running(&marker, false);
    assert!(gone < SOON, "{gone:?}");
}

#[test]
fn a_session_is_found_over_any_connection_and_outlives_the_one_that_was_closed() {
    let server = Server::start(&["--no-auth"]);
    let run = |id, code: &str| {
        let arguments = json!({ "code": code, "language": "python", "session": "s" });
        let (_, answer) = server.post(&[], &call(id, arguments));
        answer["result"]["structuredContent"].clone()
    };
    assert_eq!(run(1, "x = 1\nx")["value"], 1);
    assert_eq!(run(2, "x + 1")["value"], 2);
    // Closed while its call runs: that is interrupted, and what it has done is kept.
    let arguments =
        json!({ "code": "x = 5\nwhile True: pass", "language": "python", "session": "s" });
    let headers = [("content-type", "application/json"), ("accept", BOTH)];
    let mut message = call(3, arguments);
    message["params"]["_meta"] = json!({ "progressToken": 1 });
    let reader = server.send("POST", "/mcp", &headers, &message.to_string());
    std::thread::sleep(Duration::from_millis(500));
    drop(reader);
    let facts = run(4, "x");
    assert_eq!(facts["value"], 5, "{facts}");
}

#[test]
fn a_modern_request_must_say_in_its_headers_what_its_body_says() {
    let server = Server::start(&["--no-auth"]);
    let params = super::client::modern(json!({}));
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params });
    let version = ("mcp-protocol-version", "2026-07-28");
    let method = ("mcp-method", "tools/list");
    let (status, answer) = server.post(&[version, method], &list);
    assert_eq!(
        (status, &answer["result"]["resultType"]),
        (200, &json!("complete"))
    );
    for headers in [
        vec![],
        vec![version],
        vec![method],
        vec![version, ("mcp-method", "tools/call")],
        vec![("mcp-protocol-version", "2025-11-25"), method],
    ] {
        let (status, answer) = server.post(&headers, &list);
        assert_eq!(
            (status, &answer["error"]["code"]),
            (400, &json!(-32020)),
            "{headers:?}"
        );
    }
    let unknown = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping", "params": list["params"] });
    let (status, answer) = server.post(&[version, ("mcp-method", "ping")], &unknown);
    assert_eq!((status, &answer["error"]["code"]), (404, &json!(-32601)));
    let bare = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" });
    let (status, answer) = server.post(&[version, method], &bare);
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32602)));
    assert_eq!(
        server
            .post(&[("mcp-protocol-version", "1999-01-01")], &bare)
            .0,
        400
    );
}

/// What one caller saves, others run: so whoever comes without a token saves nothing.
#[test]
fn only_the_bearer_of_the_token_saves_tools() {
    let code = "def f():\n    return 1\nsave_tool(f)\nprint(saved.f())";
    let arguments = json!({ "language": "python", "code": code });
    let call = call(7, arguments);
    let said = |headers: &[(&str, &str)], server: &Server| {
        let (_, answer) = server.post(headers, &call);
        answer["result"]["structuredContent"]["stdout"].clone()
    };
    let server = Server::start(&[]);
    let bearer = format!("Bearer {}", server.token());
    assert_eq!(said(&[("authorization", &bearer)], &server), "1\n");
    let open = Server::start(&["--no-auth"]);
    assert_eq!(said(&[], &open), "");
}

#[test]
fn without_a_token_it_serves_on_loopback_only() {
    let output = Command::new(env!("CARGO_BIN_EXE_hotcell"))
        .args(["serve", "--http", "0.0.0.0:0", "--no-auth"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--no-auth"), "{said}");
    for weak in ["", "changeme"] {
        let output = Command::new(env!("CARGO_BIN_EXE_hotcell"))
            .args(["serve", "--http", "127.0.0.1:0"])
            .env("HOTCELL_TOKEN", weak)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "token {weak:?}");
    }
}

/// Starts a server, reads what it says until its configuration is there, and ends it.
fn told(home: &std::path::Path, arguments: &[&str]) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hotcell"))
        .arg("serve")
        .args(arguments)
        .env("HOME", home)
        .env_remove("XDG_STATE_HOME")
        .env_remove("HOTCELL_TOKEN")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    while !said.ends_with("\n}\n") && stderr.read_line(&mut said).unwrap() > 0 {}
    child.kill().unwrap();
    child.wait().unwrap();
    said
}

#[test]
fn a_port_alone_is_one_of_this_machine_and_a_bad_address_is_told() {
    let home = tempfile::tempdir().unwrap();
    for address in ["0", "localhost:0", "127.0.0.1:0"] {
        let said = told(home.path(), &["--http", address]);
        assert!(said.contains("serving MCP at http://127.0.0.1:"), "{said}");
    }
    for address in ["example.com:80", "70000", "localhost", ""] {
        let said = told(home.path(), &["--http", address]);
        assert!(said.contains("write a port (3917)"), "{address}: {said}");
    }
}

#[test]
fn a_token_is_shown_when_it_is_made_and_then_only_to_who_asks() {
    let home = tempfile::tempdir().unwrap();
    let first = told(home.path(), &["--http", "0"]);
    let second = told(home.path(), &["--http", "0"]);
    let asked = Command::new(env!("CARGO_BIN_EXE_hotcell"))
        .arg("token")
        .env("HOME", home.path())
        .env_remove("XDG_STATE_HOME")
        .env_remove("HOTCELL_TOKEN")
        .output()
        .unwrap();
    let token = String::from_utf8(asked.stdout).unwrap();
    let token = token.trim();
    assert!(token.starts_with("hotcell-") && token.len() > 40, "{token}");
    assert!(first.contains(&format!("\"Bearer {token}\"")), "{first}");
    assert!(!second.contains(token), "{second}");
    assert!(second.contains("`hotcell token` prints it"), "{second}");
}

#[test]
fn on_every_address_the_entry_names_one_that_works_elsewhere() {
    let Some(own) = own_address() else {
        return crate::support::skip("this machine has no address but loopback");
    };
    let state = tempfile::tempdir().unwrap();
    let mut server = std::process::Command::new(env!("CARGO_BIN_EXE_hotcell"))
        .args(["serve", "--http", "0.0.0.0:0"])
        .env("XDG_STATE_HOME", state.path())
        .env_remove("HOTCELL_TOKEN")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut stderr = BufReader::new(server.stderr.take().unwrap());
    while !said.ends_with("\n}\n") && stderr.read_line(&mut said).unwrap() > 0 {}
    let entry: Value = serde_json::from_str(&said[said.find('{').unwrap()..]).unwrap();
    let entry = &entry["mcpServers"]["hotcell"];
    let url = entry["url"].as_str().unwrap();
    let place = url
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/mcp")
        .unwrap();
    assert!(place.starts_with(&format!("{own}:")), "{said}");
    assert!(said.contains("`--allow-host NAME`"), "{said}");
    // The entry works as it is; another name of the same machine does not.
    let bearer = entry["headers"]["Authorization"].as_str().unwrap();
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let ask = |host: &str| {
        let mut stream = TcpStream::connect(place).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: {bearer}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{ping}",
            ping.len()
        )
        .unwrap();
        let mut answer = String::new();
        let _ = BufReader::new(stream).read_line(&mut answer);
        answer
    };
    assert!(ask(place).contains(" 200 "), "{}", ask(place));
    assert!(ask("evil.test").contains(" 403 "), "{}", ask("evil.test"));
    server.kill().unwrap();
    server.wait().unwrap();
    let home = tempfile::tempdir().unwrap();
    let named = told(
        home.path(),
        &["--http", "0.0.0.0:0", "--allow-host", "cells.test"],
    );
    assert!(named.contains("\"http://cells.test:"), "{named}");
}

/// The address that a packet to the world would come from.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|it| !it.is_loopback())
}
