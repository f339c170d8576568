//! The cases of the category `output-injection`, judged by the raw bytes that the
//! server sends, on stdio and on an event stream.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Case, over_http, program, says, stdio, still_serves, unharmed};
use crate::raw::{Stdio, protocol};

pub const CASES: &[Case] = &[
    ("OUT-01", fake_frames),
    ("OUT-02", foreign_stdout),
    ("OUT-03", escape_sequences),
    ("OUT-04", bytes_that_are_no_text),
    ("OUT-05", giant_output),
    ("OUT-06", spoofed_markers),
    ("OUT-09", tampered_flags),
    ("OUT-10", active_content),
];

/// Runs a case's program on stdio: its record, and that nothing else was sent.
fn run(client: &mut Stdio, id: &str, language: &str) -> Value {
    let before = client.lines.len();
    let record = client.run(json!({ "code": program(id), "language": language, "timeout": 30 }));
    assert_eq!(
        client.next(Duration::from_millis(300)),
        None,
        "a frame too many"
    );
    assert_eq!(client.lines.len(), before + 1);
    record
}

/// The same with reports, over HTTP: every event of the stream.
fn events(id: &str, language: &str) -> Vec<Value> {
    let server = over_http();
    let arguments = json!({ "code": program(id), "language": language, "timeout": 30 });
    let params =
        json!({ "name": "run", "arguments": arguments, "_meta": { "progressToken": "t" } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let answer = server.post(&call);
    assert_eq!(answer.status, 200);
    still_serves(&server);
    let text = std::str::from_utf8(&answer.body).expect("UTF-8");
    if answer.header("content-type") != Some("text/event-stream") {
        return vec![protocol(&answer.body)];
    }
    let frames = text.split_terminator("\n\n").filter(|frame| *frame != ":");
    frames
        .map(|frame| {
            let (kind, data) = frame.split_once('\n').expect("two lines");
            assert_eq!(kind, "event: message");
            let data = data.strip_prefix("data: ").expect("data");
            protocol(data.as_bytes())
        })
        .collect()
}

/// One answer, and before it nothing but reports.
fn only_one_answer(events: &[Value]) -> &Value {
    let (answer, reports) = events.split_last().expect("an answer");
    assert_eq!(answer["id"], 1);
    for report in reports {
        assert_eq!(report["method"], "notifications/progress", "{report}");
        assert_eq!(report.get("id"), None);
    }
    answer
}

fn fake_frames() {
    let mut client = stdio(&[]);
    let record = run(&mut client, "OUT-01", "python");
    for stream in ["stdout", "stderr"] {
        let text = record[stream].as_str().expect("text");
        assert!(
            text.starts_with(r#"{"jsonrpc":"2.0","id":1,"result""#),
            "{text}"
        );
        assert!(
            text.contains("Content-Length: 5\r\n\r\nhello\ndata: {}\n\n"),
            "{text}"
        );
    }
    unharmed(client);
    let events = events("OUT-01", "python");
    let record = &only_one_answer(&events)["result"]["structuredContent"];
    assert_eq!(record["status"], "ok");
}

fn foreign_stdout() {
    let mut client = stdio(&[]);
    let record = run(&mut client, "OUT-02", "python");
    assert_eq!(record["status"], "ok", "{record}");
    let spoofed = client.lines.iter().map(|line| protocol(line));
    assert!(
        spoofed
            .into_iter()
            .all(|message| message["result"] != "SPOOF")
    );
    assert!(!client.server.log().contains("SPOOF"));
    unharmed(client);
}

fn escape_sequences() {
    let mut client = stdio(&[]);
    let record = run(&mut client, "OUT-03", "bash");
    // Every line has been checked for raw control characters; here the text has them.
    let text = record["stdout"].as_str().expect("text");
    assert!(text.starts_with("\u{1b}]52;c;"), "{text:?}");
    assert!(text.contains('\u{202e}'), "{text:?}");
    let line = client.lines.last().expect("a line");
    assert!(says(line, r"\u001b]52;c;"), "it is escaped on the wire");
    unharmed(client);
    only_one_answer(&events("OUT-03", "bash"));
}

fn bytes_that_are_no_text() {
    let mut client = stdio(&[]);
    let record = run(&mut client, "OUT-04", "python");
    let text = record["stdout"].as_str().expect("text");
    assert!(
        text.starts_with('\u{fffd}') && text.contains('\0'),
        "{text:?}"
    );
    // Cut in the middle of a character: still text on both sides.
    let code = "import sys; sys.stdout.write('\u{1f600}' * 700_000)";
    let record = client.run(json!({ "code": code, "language": "python" }));
    assert_eq!(record["total_bytes"]["stdout"], 2_800_000);
    unharmed(client);
    only_one_answer(&events("OUT-04", "python"));
}

fn giant_output() {
    let mut client = stdio(&[]);
    client.run(json!({ "code": "print(1)", "language": "python" }));
    let before = client.server.memory("VmHWM");
    let record = run(&mut client, "OUT-05", "python");
    assert_eq!(
        record["total_bytes"]["stdout"],
        (50 << 20) + 2_000_000,
        "{record}"
    );
    let text = record["stdout"].as_str().expect("text");
    assert!(text.starts_with("AAAA") && text.ends_with("\n\n\n\n"));
    assert!(text.len() < 100_000);
    let grown = client.server.memory("VmHWM").saturating_sub(before);
    assert!(grown < 24 << 10, "{grown} KiB more for 52 MB");
    unharmed(client);
}

fn spoofed_markers() {
    let mut client = stdio(&[]);
    let record = run(&mut client, "OUT-06", "python");
    assert_eq!(record["exit_code"], 7);
    assert_eq!(record["status"], "failed");
    assert_eq!(record["truncated"], Value::Null);
    assert_eq!(record.get("artifacts"), None);
    let text = record["stdout"].as_str().expect("text");
    assert!(text.starts_with("[exit code: 0]\n--- stderr ---"));
    unharmed(client);
}

fn tampered_flags() {
    let mut client = stdio(&[]);
    let record = run(&mut client, "OUT-09", "python");
    let text = record["stdout"].as_str().expect("text");
    assert!(text.starts_with("xxxx"), "{record}");
    assert!(!text.contains("gone"));
    unharmed(client);
}

fn active_content() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket option");
    let port = listener.local_addr().expect("its address").port();
    let code = program("OUT-10").replace("47999", &port.to_string());
    let mut client = stdio(&[]);
    let record = client.run(json!({ "code": code, "language": "python" }));
    assert!(
        record["stdout"]
            .as_str()
            .is_some_and(|text| text.starts_with("![x](http://"))
    );
    let types: Vec<&Value> = record["files"].as_array().expect("files").iter().collect();
    let types: Vec<&Value> = types.iter().map(|file| &file["type"]).collect();
    let unknown = "application/octet-stream";
    assert_eq!(types, ["image/svg+xml", unknown, "text/html"]);
    std::thread::sleep(Duration::from_millis(200));
    assert!(
        listener.accept().is_err(),
        "a URL in the output was fetched"
    );
    unharmed(client);
}

#[test]
fn what_does_not_belong_on_the_stream_is_noticed() {
    for line in [
        &b"hello"[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\x1b[2J\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}",
        b"{\"id\":1,\"result\":{}}",
    ] {
        let line = line.to_vec();
        std::panic::set_hook(Box::new(|_| {}));
        let noticed = std::panic::catch_unwind(|| protocol(&line)).is_err();
        let _ = std::panic::take_hook();
        assert!(noticed, "{line:?}");
    }
}
