//! Too much of something: connections, bodies, headers, patience.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Bait, POST};
use crate::hostile_server::{over_http, still_serves};
use crate::raw::http::{Answer, Http, call, request};
use crate::raw::{PATIENCE, processes_with};

/// Half of what the case has of each, so that it fits beside other tests.
const HEADERS: usize = 250;
const BODIES: usize = 100;
const STREAMS: usize = 100;

pub fn slow_clients() {
    let server = over_http();
    allow_many_files();
    let before = server.server.memory("VmRSS");
    let start = |text: &str| {
        let mut stream = server.connect();
        let _ = stream.write_all(text.as_bytes());
        stream
    };
    let heads: Vec<TcpStream> = (0..HEADERS)
        .map(|_| start("POST /mcp HTTP/1.1\r\nX: a"))
        .collect();
    let usual = server.usual().join("\r\n");
    let head = format!("{POST}\r\n{usual}\r\nContent-Length: 1000\r\n\r\n{{");
    let bodies: Vec<TcpStream> = (0..BODIES).map(|_| start(&head)).collect();
    let arguments = json!({ "code": "for i in $(seq 50); do seq 2000; sleep 0.1; done", "language": "bash", "timeout": 5 });
    let mut unread = call("run", arguments);
    unread["params"]["_meta"] = json!({ "progressToken": 1 });
    let unread = request(POST, &server.usual(), unread.to_string().as_bytes());
    let unread = String::from_utf8_lossy(&unread).into_owned();
    let streams: Vec<TcpStream> = (0..STREAMS).map(|_| start(&unread)).collect();

    let mut slow: Vec<TcpStream> = heads.into_iter().chain(bodies).collect();
    // Everybody drips on, too slowly to ever be done; a good client comes and is served all the while.
    let mut drip_until_closed = |count: usize| {
        let began = Instant::now();
        while slow[..count].iter().any(is_open) {
            assert!(began.elapsed() < PATIENCE, "a slow client is kept");
            for stream in &mut slow {
                let _ = stream.write_all(b"a");
            }
            server.serves();
            thread::sleep(Duration::from_millis(700));
        }
    };
    drip_until_closed(HEADERS);
    let grown = server.server.memory("VmRSS").saturating_sub(before);
    assert!(grown < 100 << 10, "{grown} KiB more");
    drip_until_closed(HEADERS + BODIES);
    drop(streams);
    drop(slow);
    still_serves(&server);
}

/// Whether the other side has not closed it yet.
fn is_open(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket option");
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
        }
    }
}

fn allow_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let more = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, more).expect("up to the maximum is allowed");
}

pub fn oversize_bodies() {
    let server = over_http();
    let before = server.server.memory("VmRSS");
    let head = |more: &[&str]| {
        let usual = server.usual().join("\r\n");
        format!("{POST}\r\n{usual}\r\n{}\r\n\r\n", more.join("\r\n"))
    };
    // Refused by what it announces, with not a byte of it sent.
    for (length, statuses) in [
        ("1073741824", [413, 413]),
        ("524288000", [413, 413]),
        // More than a length can be.
        ("18446744073709551615", [400, 431]),
        ("99999999999999999999", [400, 431]),
    ] {
        let answer = server.exchange(head(&[&format!("Content-Length: {length}")]).as_bytes());
        assert!(statuses.contains(&answer.status), "{length}: {answer:?}");
    }
    let form = server.without("content-type");
    let mut form = format!("{POST}\r\n{}\r\n", form.join("\r\n"));
    form += "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 1073741824\r\n\r\n";
    assert!([413, 415].contains(&server.exchange(form.as_bytes()).status));

    // Without a length: read no further than the cap.
    let mut stream = server.connect();
    stream
        .write_all(head(&["Transfer-Encoding: chunked"]).as_bytes())
        .expect("a head");
    let piece = vec![b' '; 1 << 20];
    let mut sent = 0;
    while sent < 64 {
        let chunk = [b"100000\r\n", &piece[..], b"\r\n"].concat();
        if stream.write_all(&chunk).is_err() {
            break;
        }
        sent += 1;
    }
    assert!(sent < 40, "{sent} MiB were taken");
    let peak = server.server.memory("VmHWM").saturating_sub(before);
    assert!(peak < 48 << 10, "{peak} KiB more");
    // Control: what is below the cap is read.
    let mut call = call(
        "run",
        json!({ "code": "print(len(input()))", "language": "python" }),
    );
    call["params"]["arguments"]["stdin"] = "s".repeat(7 << 20).into();
    let record = server.post(&call).message()["result"]["structuredContent"].clone();
    assert_eq!(record["stdout"], format!("{}\n", 7 << 20));
    still_serves(&server);
}

pub fn header_floods() {
    let server = over_http();
    let bait = Bait::new();
    let before = server.server.memory("VmRSS");
    let many: Vec<String> = (0..10_000).map(|n| format!("X-{n}: y")).collect();
    let large = vec![format!("X-Large: {}", "y".repeat(1 << 20))];
    let cookies: Vec<String> = (0..100_000).map(|n| format!("Cookie: c{n}=1")).collect();
    for more in [many, large, cookies] {
        let answer = refused(&server, &[server.usual(), more].concat(), POST, &bait.body);
        assert!([0, 431].contains(&answer.status), "{answer:?}");
    }
    let line = format!("POST /mcp?{} HTTP/1.1", "q".repeat(100_000));
    let answer = refused(&server, &server.usual(), &line, &bait.body);
    assert!([0, 414, 431].contains(&answer.status), "{answer:?}");
    assert_eq!(processes_with(&bait.word), [""; 0]);
    let peak = server.server.memory("VmHWM").saturating_sub(before);
    assert!(peak < 16 << 10, "{peak} KiB more");
    still_serves(&server);
}

/// A reset may overtake the refusal, when the server closes before all was sent.
fn refused(server: &Http, headers: &[String], line: &str, body: &str) -> Answer {
    server.ask(line, headers, body.as_bytes())
}

pub fn compressed_bodies() {
    let server = over_http();
    let before = server.server.memory("VmRSS");
    // A real gzip stream of ten thousand spaces is as good as ten gigabytes: none is read.
    let body = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3].repeat(100);
    for coding in [
        "gzip",
        "deflate",
        "br",
        "zstd",
        "gzip, gzip",
        "GZIP",
        "x-gzip",
        "identity, gzip",
    ] {
        let headers = [server.usual(), vec![format!("Content-Encoding: {coding}")]].concat();
        assert_eq!(server.ask(POST, &headers, &body).status, 415, "{coding}");
    }
    // As a transfer coding it is no body that we could read either.
    let usual = server.usual().join("\r\n");
    let coded = format!(
        "{POST}\r\n{usual}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    );
    let answer = server.exchange(coded.as_bytes());
    assert!((400..502).contains(&answer.status), "{answer:?}");
    let peak = server.server.memory("VmHWM").saturating_sub(before);
    assert!(peak < 16 << 10, "{peak} KiB more");
    still_serves(&server);
}
