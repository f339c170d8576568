//! The cases of the category `http`: hostile clients on the port.

mod floods;
mod framing;

use std::process::{Command, Stdio as Pipe};

use serde_json::json;

use super::crossing::{open_session, unpredictable};
use super::protocol::SOON;
use super::{Case, over_http, still_serves};
use crate::raw::http::{Answer, Http, call, request};
use crate::raw::{fresh_word, processes_with, wait_until};

pub const CASES: &[Case] = &[
    ("HTT-01", no_token),
    ("HTT-02", malformed_tokens),
    ("HTT-03", foreign_origins),
    ("HTT-04", foreign_hosts),
    ("HTT-05", simple_posts),
    ("HTT-06", anothers_session),
    ("HTT-07", guessed_sessions),
    ("HTT-08", floods::slow_clients),
    ("HTT-09", floods::oversize_bodies),
    ("HTT-10", framing::request_smuggling),
    ("HTT-11", floods::header_floods),
    ("HTT-12", framing::paths_and_methods),
    ("HTT-13", versions_and_forms),
    ("HTT-14", unsafe_starts),
    ("HTT-15", framing::http2),
    ("HTT-18", floods::compressed_bodies),
];

const POST: &str = "POST /mcp HTTP/1.1";

/// A call whose program can be seen to run, and the word it is seen by.
struct Bait {
    word: String,
    body: String,
}

impl Bait {
    fn new() -> Self {
        let word = fresh_word();
        let arguments = json!({ "code": "sleep 30", "language": "bash", "args": [word] });
        let body = call("run", arguments).to_string();
        Self { word, body }
    }

    /// Sends it with these headers, and takes the answer: it must be a refusal.
    fn refused(&self, server: &Http, headers: &[String]) -> Answer {
        let answer = server.ask(POST, headers, self.body.as_bytes());
        assert!(
            (400..500).contains(&answer.status),
            "{headers:?}: {answer:?}"
        );
        assert_eq!(processes_with(&self.word), [""; 0], "{headers:?}: it ran");
        answer
    }

    /// Control: as a good client sends it, it does run.
    fn bites(&self, server: &Http) {
        let mut stream = server.connect();
        let bytes = request(POST, &server.usual(), self.body.as_bytes());
        std::io::Write::write_all(&mut stream, &bytes).expect("it is taken");
        let running = wait_until(SOON, || !processes_with(&self.word).is_empty());
        assert!(running.is_some(), "the bait does not run");
        drop(stream);
        let gone = wait_until(SOON, || processes_with(&self.word).is_empty());
        assert!(gone.is_some(), "a client that is gone keeps its program");
    }
}

fn no_token() {
    let server = over_http();
    let bait = Bait::new();
    let headers = server.without("authorization");
    let answer = bait.refused(&server, &headers);
    assert_eq!(answer.status, 401);
    for line in [
        "GET /mcp HTTP/1.1",
        "DELETE /mcp HTTP/1.1",
        "GET /artifacts/x HTTP/1.1",
        "GET /metrics HTTP/1.1",
        // The page is the same for everybody; what it shows is not.
        "POST / HTTP/1.1",
        "GET /page HTTP/1.1",
        "PUT /mcp HTTP/1.1",
    ] {
        let answer = server.ask(line, &headers, b"");
        assert_eq!(answer.status, 401, "{line}");
        let wanted = answer.header("www-authenticate");
        assert!(
            wanted.is_some_and(|scheme| scheme.starts_with("Bearer")),
            "{line}"
        );
    }
    bait.bites(&server);
    still_serves(&server);
}

fn malformed_tokens() {
    let server = over_http();
    let bait = Bait::new();
    let token = server.token.clone().expect("a token");
    let good = format!("Authorization: Bearer {token}");
    let headers = |more: &[String]| [server.without("authorization"), more.to_vec()].concat();
    let wrong = [
        "Bearer wrong".to_owned(),
        format!("bearer {token}x"),
        format!("Bearer {}", &token[..token.len() / 2]),
        format!("Bearer {token}\u{0}"),
        "Bearer  ".to_owned(),
        format!("Basic {token}"),
        token.clone(),
        format!("Bearer  {token}"),
        format!("Bearer {token} {token}"),
    ]
    .map(|value| format!("Authorization: {value}"));
    for line in &wrong {
        bait.refused(&server, &headers(std::slice::from_ref(line)));
    }
    bait.refused(&server, &headers(&[wrong[0].clone(), good.clone()]));
    bait.refused(&server, &headers(&[good.clone(), wrong[0].clone()]));
    bait.refused(
        &server,
        &headers(&[format!("Cookie: token={token}; access_token={token}")]),
    );
    for query in ["token", "access_token"] {
        let line = format!("POST /mcp?{query}={token} HTTP/1.1");
        let answer = server.ask(&line, &headers(&[]), bait.body.as_bytes());
        assert_eq!(answer.status, 401);
    }
    // One who keeps guessing is told to wait, and the right token passes all the same.
    let told = (0..30).any(|_| bait.refused(&server, &headers(&wrong[..1])).status == 429);
    assert!(told, "guesses are not throttled");
    still_serves(&server);
}

fn foreign_origins() {
    let server = over_http();
    let bait = Bait::new();
    let port = server.address.port();
    let with = |origin: &str| [server.usual(), vec![format!("Origin: {origin}")]].concat();
    for origin in [
        "http://evil.test",
        "null",
        "http://localhost.evil.test",
        "http://127.0.0.1.evil.test",
        &format!("https://127.0.0.1:{port}@evil.test"),
        "file://",
        &format!("http://LOCALHOST:{port}"),
        "chrome-extension://x",
        "",
        &format!("http://127.0.0.1:{}", port.wrapping_add(1)),
    ] {
        assert_eq!(bait.refused(&server, &with(origin)).status, 403, "{origin}");
    }
    let own = format!("Origin: http://127.0.0.1:{port}");
    let two = [with("http://evil.test"), vec![own.clone()]].concat();
    assert_eq!(bait.refused(&server, &two).status, 403);
    // Control: none is fine, and our own is.
    server.serves();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let answer = server.ask(POST, &[server.usual(), vec![own]].concat(), body.as_bytes());
    assert_eq!(answer.status, 200);
    still_serves(&server);
}

fn foreign_hosts() {
    let server = over_http();
    let bait = Bait::new();
    let port = server.address.port();
    let with = |hosts: &[String]| [server.without("host"), hosts.to_vec()].concat();
    let own = format!("Host: 127.0.0.1:{port}");
    for host in [
        "evil.test",
        &format!("evil.test:{port}"),
        "127.0.0.1.nip.io",
        "localhost.evil.test",
        "",
        &format!("evil.test@127.0.0.1:{port}"),
        &format!("127.0.0.1:{port}@evil.test"),
        "localhost:evil",
        "[::1",
        "0.0.0.0",
        "2130706433",
    ] {
        let answer = bait.refused(&server, &with(&[format!("Host: {host}")]));
        assert!(
            [400, 403, 421].contains(&answer.status),
            "{host}: {answer:?}"
        );
    }
    bait.refused(&server, &with(&[own.clone(), own.clone()]));
    bait.refused(&server, &with(&[own.clone(), "Host: evil.test".to_owned()]));
    bait.refused(&server, &with(&[]));
    let forwarded = [
        "Host: evil.test",
        "X-Forwarded-Host: localhost",
        "Forwarded: host=localhost",
    ];
    bait.refused(&server, &with(&forwarded.map(str::to_owned)));
    let answer = server.ask(
        "POST http://evil.test/mcp HTTP/1.1",
        &server.usual(),
        bait.body.as_bytes(),
    );
    assert!([400, 403, 421].contains(&answer.status), "{answer:?}");
    assert_eq!(processes_with(&bait.word), [""; 0]);
    // Control: each of our own names is served.
    for host in ["localhost", "127.0.0.1", "[::1]"] {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let answer = server.ask(
            POST,
            &with(&[format!("Host: {host}:{port}")]),
            body.as_bytes(),
        );
        assert_eq!(answer.status, 200, "{host}");
    }
    still_serves(&server);
}

fn simple_posts() {
    let server = over_http();
    let bait = Bait::new();
    let asking = [
        server.without("authorization"),
        [
            "Origin: http://evil.test",
            "Access-Control-Request-Method: POST",
            "Access-Control-Request-Headers: authorization",
        ]
        .map(str::to_owned)
        .to_vec(),
    ]
    .concat();
    let answer = server.ask("OPTIONS /mcp HTTP/1.1", &asking, b"");
    assert!(answer.status >= 400);
    assert!(
        answer
            .headers
            .iter()
            .all(|(name, _)| !name.starts_with("access-control-"))
    );
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json-patch+json",
        "text/plain; application/json",
        "",
    ] {
        let headers = [
            server.without("content-type"),
            vec![format!("Content-Type: {kind}")],
        ];
        assert_eq!(
            bait.refused(&server, &headers.concat()).status,
            415,
            "{kind}"
        );
    }
    let none = bait.refused(&server, &server.without("content-type"));
    assert_eq!(none.status, 415);
    still_serves(&server);
}

fn anothers_session() {
    let server = over_http();
    let session = open_session(&server);
    let header = format!("Mcp-Session-Id: {session}");
    let stranger = [
        server.without("authorization"),
        vec![
            header.clone(),
            "Authorization: Bearer another-token-of-some-length".to_owned(),
            "Last-Event-ID: 1".to_owned(),
        ],
    ]
    .concat();
    for method in ["POST", "GET", "DELETE"] {
        let body = if method == "POST" {
            Bait::new().body
        } else {
            String::new()
        };
        let answer = server.ask(
            &format!("{method} /mcp HTTP/1.1"),
            &stranger,
            body.as_bytes(),
        );
        assert_eq!(answer.status, 401, "{method}");
    }
    // It is still there, and still its owner's.
    let own = [server.usual(), vec![header]].concat();
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    assert_eq!(server.ask(POST, &own, body).status, 200);
    let ended = server.ask("DELETE /mcp HTTP/1.1", &own, b"");
    assert!((200..300).contains(&ended.status), "{ended:?}");
    assert_eq!(server.ask(POST, &own, body).status, 404);
    still_serves(&server);
}

fn guessed_sessions() {
    let server = over_http();
    let count = if super::long() { 1000 } else { 200 };
    let ids: Vec<String> = (0..count).map(|_| open_session(&server)).collect();
    unpredictable(&ids);
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let ask = |header: String| server.ask(POST, &[server.usual(), vec![header]].concat(), body);
    for guess in [
        "1",
        "00000000000000000000000000000000",
        "\u{e9}\u{e9}",
        "a b",
    ] {
        assert_eq!(
            ask(format!("Mcp-Session-Id: {guess}")).status,
            404,
            "{guess}"
        );
    }
    // A line break in a value is a header of its own, and no answer repeats it.
    let answer = ask("Mcp-Session-Id: a\r\nX-Injected: b".to_owned());
    assert_eq!(answer.status, 404);
    assert_eq!(answer.header("x-injected"), None);
    assert_eq!(
        ask(format!("Mcp-Session-Id: {}", "x".repeat(64 << 10))).status,
        431
    );
    still_serves(&server);
}

fn versions_and_forms() {
    let server = over_http();
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let with = |more: &[&str]| {
        let more = more.iter().map(|line| (*line).to_owned()).collect();
        server
            .ask(POST, &[server.usual(), more].concat(), body)
            .status
    };
    assert_eq!(with(&["MCP-Protocol-Version: 1999-01-01"]), 400);
    assert_eq!(with(&["MCP-Protocol-Version: \u{1f600}"]), 400);
    let long = format!("MCP-Protocol-Version: {}", "x".repeat(100_000));
    assert!([400, 431].contains(&with(&[&long])));
    let old = "MCP-Protocol-Version: 2025-06-18";
    assert_eq!(with(&[old, "MCP-Protocol-Version: 2025-11-25"]), 400);
    assert_eq!(with(&[old]), 200);
    assert_eq!(with(&[]), 200, "without one the oldest revision is meant");
    let forms = [
        ("accept", "Accept: text/html", 406),
        ("accept", "Accept: image/*", 406),
        ("accept", "Accept: */*", 200),
        (
            "content-type",
            "Content-Type: application/json; charset=utf-7",
            415,
        ),
        (
            "content-type",
            "Content-Type: application/json; charset=utf-8",
            200,
        ),
    ];
    for (name, line, status) in forms {
        let headers = [server.without(name), vec![line.to_owned()]].concat();
        assert_eq!(server.ask(POST, &headers, body).status, status, "{line}");
    }
    still_serves(&server);
}

fn unsafe_starts() {
    let home = tempfile::tempdir().expect("a home");
    let file = home.path().join("token");
    std::fs::write(&file, "a-token-of-some-length\n").expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&file, mode).expect("its mode");
    let file = file.display().to_string();
    let local = "127.0.0.1:0";
    for (flags, token, words) in [
        (&["--http", "0.0.0.0:0", "--no-auth"][..], None, "--no-auth"),
        (&["--http", "[::]:0", "--no-auth"], None, "--no-auth"),
        (&["--http", local], Some(""), "token"),
        (&["--http", local], Some("changeme"), "token"),
        (
            &["--http", local, "--token-file", &file],
            None,
            "can be read by others",
        ),
        (&["--no-auth"], None, "--http"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotcell"));
        command
            .arg("serve")
            .args(flags)
            .env("HOME", home.path())
            .env_remove("HOTCELL_TOKEN");
        if let Some(token) = token {
            command.env("HOTCELL_TOKEN", token);
        }
        let output = command.stdin(Pipe::null()).output().expect("it starts");
        assert!(!output.status.success(), "{flags:?} {token:?} was accepted");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(words), "{flags:?}: {said}");
    }
    // On every address, but with a token that was made: whoever has none gets nothing.
    let everywhere = Http::start_as(&["--http", "0.0.0.0:0"], |_, _| {});
    assert!(everywhere.token.is_some());
    let state = everywhere
        .server
        .home
        .path()
        .join(".local/state/hotcell/token");
    let kept = std::fs::metadata(state).expect("the token is kept");
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&kept.permissions()) & 0o777,
        0o600
    );
}
