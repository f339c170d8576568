//! Requests that two readers could read in two ways, and doors that are not there.

use std::io::{Read, Write};

use super::{Bait, POST};
use crate::hostile_server::{over_http, still_serves};
use crate::raw::http::{Answer, Http};
use crate::raw::processes_with;

/// All that the server says on a connection until it closes it.
fn whole(server: &Http, bytes: &[u8]) -> String {
    let mut stream = server.connect();
    let _ = stream.write_all(bytes);
    let mut text = Vec::new();
    // A reset after the answer is one way to close.
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn answers(text: &str) -> usize {
    text.matches("HTTP/1.1 ").count()
}

pub fn request_smuggling() {
    let server = over_http();
    let bait = Bait::new();
    // What a smuggled request would do, if it were read as one of its own.
    let smuggled = format!(
        "{POST}\r\n{}\r\nContent-Length: {}\r\n\r\n{}",
        server.usual().join("\r\n"),
        bait.body.len(),
        bait.body
    );
    let usual = server.usual().join("\r\n");
    let chunked = format!("5\r\nhello\r\n0\r\n\r\n{smuggled}");
    let post = |framing: &str, body: &str| format!("{POST}\r\n{usual}\r\n{framing}\r\n\r\n{body}");
    let ambiguous = [
        post("Content-Length: 5\r\nTransfer-Encoding: chunked", &chunked),
        post("Transfer-Encoding: chunked\r\nContent-Length: 5", &chunked),
        post(
            "Content-Length: 5\r\nContent-Length: 6",
            &format!("hello{smuggled}"),
        ),
        post("Content-Length: +5", &format!("hello{smuggled}")),
        post("Content-Length: 0x5", &format!("hello{smuggled}")),
        post("Content-Length: 5 5", &format!("hello{smuggled}")),
        post("Content-Length: 5, 6", &format!("hello{smuggled}")),
        post("Content-Length: -5", &format!("hello{smuggled}")),
        post("Transfer-Encoding: xchunked", &chunked),
        post("Transfer-Encoding: chunked, identity", &chunked),
        post("Transfer-Encoding: \u{b}chunked", &chunked),
        post(
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            &chunked,
        ),
        post(
            "X: a\r\n folded: b\r\nContent-Length: 5",
            &format!("hello{smuggled}"),
        ),
        post(
            "X: a\u{0}b\r\nContent-Length: 5",
            &format!("hello{smuggled}"),
        ),
        post("Content-Length : 5", &format!("hello{smuggled}")),
        post("Transfer-Encoding : chunked", &chunked),
        post(
            "Transfer-Encoding: chunked",
            &format!("FFFFFFFFFFFFFFFF\r\n{smuggled}"),
        ),
        post(
            "Transfer-Encoding: chunked",
            &format!("10000000000000005\r\nhello\r\n0\r\n\r\n{smuggled}"),
        ),
        post(
            "Transfer-Encoding: chunked",
            &format!("5;{}\r\nhello\r\n0\r\n\r\n{smuggled}", "x".repeat(1 << 20)),
        ),
        post(
            "Transfer-Encoding: chunked",
            &format!("5\r\nhelloX0\r\n\r\n{smuggled}"),
        ),
        format!("{POST}\r\n{usual}\r\nX: a\rTransfer-Encoding: chunked\r\n\r\n{chunked}"),
    ];
    let mut wrong = Vec::new();
    for bytes in &ambiguous {
        let text = whole(&server, bytes.as_bytes());
        let refused = text.is_empty() || text.starts_with("HTTP/1.1 4");
        if !refused || answers(&text) > 1 || !processes_with(&bait.word).is_empty() {
            let shown: String = bytes.chars().skip(usual.len()).take(120).collect();
            let said: String = text.chars().take(100).collect();
            wrong.push(format!("{shown:?} was answered by {said:?}"));
        }
    }
    assert_eq!(wrong, [""; 0]);

    // A line that ends without a carriage return can be read in one way only, and is
    // (RFC 9112, 2.2): what follows the body is a request of its own, with no token here.
    let bare = server.without("authorization").join("\r\n");
    let second = format!(
        "{POST}\r\n{bare}\r\nContent-Length: {}\r\n\r\n{}",
        bait.body.len(),
        bait.body
    );
    let usual_lines = server.usual().join("\n");
    let text = whole(
        &server,
        format!("{POST}\n{usual_lines}\nContent-Length: 5\n\nhello{second}").as_bytes(),
    );
    assert!(text.starts_with("HTTP/1.1 400"), "{text}");
    assert!(
        answers(&text) == 1 || text.contains("HTTP/1.1 401"),
        "{text}"
    );

    // Two in one go: each is judged alone.
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let first = post(&format!("Content-Length: {}", ping.len()), ping);
    let text = whole(&server, format!("{first}{second}").as_bytes());
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert!(text.contains("HTTP/1.1 401"), "{text}");
    assert_eq!(processes_with(&bait.word), [""; 0]);
    bait.bites(&server);
    still_serves(&server);
}

pub fn paths_and_methods() {
    let server = over_http();
    let bait = Bait::new();
    let without = server.without("authorization");
    for path in [
        "//mcp",
        "/mcp/",
        "/MCP",
        "/mcp/../metrics",
        "/mcp%2f..%2fmetrics",
        "/%2e%2e/etc/passwd",
        "/artifacts/..%2f..%2fetc%2fpasswd",
        "/mcp;x",
        "/./mcp",
        "/%6dcp",
        "/healthz/../mcp",
    ] {
        let line = format!("POST {path} HTTP/1.1");
        let answer = server.ask(&line, &server.usual(), bait.body.as_bytes());
        assert!(
            [400, 404, 405].contains(&answer.status),
            "{path}: {answer:?}"
        );
        assert!(!answer.text().contains("root:"), "{path}");
        // Who may, before what there is.
        let answer = server.ask(&line, &without, bait.body.as_bytes());
        assert!(
            [400, 401, 429].contains(&answer.status),
            "{path}: {answer:?}"
        );
    }
    let answer = server.ask(
        "POST http://evil/mcp HTTP/1.1",
        &server.usual(),
        bait.body.as_bytes(),
    );
    assert_eq!(answer.status, 403);
    for method in ["TRACE", "PUT", "FOO", "PATCH", "HEAD", "OPTIONS", "GET"] {
        let line = format!("{method} /mcp HTTP/1.1");
        // The answer to HEAD has no body, whatever its length says.
        let text = whole(
            &server,
            &crate::raw::http::request(&line, &server.usual(), b""),
        );
        assert!(text.starts_with("HTTP/1.1 405"), "{method}: {text}");
        assert!(
            !text.contains("Bearer "),
            "{method}: it repeats the request"
        );
    }
    let answer = whole(
        &server,
        format!(
            "CONNECT evil.test:80 HTTP/1.1\r\nHost: {}\r\n\r\n",
            server.address
        )
        .as_bytes(),
    );
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
        "{answer}"
    );
    // A method that is only claimed is not the method.
    let claimed = [
        server.usual(),
        vec!["X-HTTP-Method-Override: DELETE".to_owned()],
    ]
    .concat();
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let answer = server.ask(POST, &claimed, ping);
    assert_eq!(answer.status, 200);
    assert_eq!(processes_with(&bait.word), [""; 0]);
    still_serves(&server);
}

pub fn http2() {
    let server = over_http();
    let before = server.server.memory("VmRSS");
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    // An empty SETTINGS frame, then HEADERS and RST_STREAM for a thousand streams.
    let mut frames = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
    for stream in (1..2001_u32).step_by(2) {
        frames.extend([0, 0, 1, 1, 5]);
        frames.extend(stream.to_be_bytes());
        frames.push(0x82);
        frames.extend([0, 0, 4, 3, 0]);
        frames.extend(stream.to_be_bytes());
        frames.extend([0, 0, 0, 8]);
    }
    for _ in 0..20 {
        let text = whole(&server, &[&preface[..], &frames].concat());
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
    }
    let upgrade = [
        server.usual(),
        [
            "Connection: Upgrade, HTTP2-Settings",
            "Upgrade: h2c",
            "HTTP2-Settings: AAMAAABkAAQAAP__",
        ]
        .map(str::to_owned)
        .to_vec(),
    ]
    .concat();
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let answer: Answer = server.ask(POST, &upgrade, ping);
    assert_ne!(answer.status, 101);
    let grown = server.server.memory("VmRSS").saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KiB more");
    still_serves(&server);
}
