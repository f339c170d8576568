//! What a server holds for its callers is bounded in bytes: whoever comes when there is no room is told that it is busy, the others are
//! served, and what is let go of makes room. SECURITY.md has the table of these bounds.

use std::fs;
use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::raw::http::{Answer, Http, request};
use crate::raw::{PATIENCE, Stdio, wait_until};

const POST: &str = "POST /mcp HTTP/1.1";
/// What the server may hold for all requests and answers, and what goes with it, in KiB.
const CEILING: u64 = (256 + 96) << 10;

fn over_http() -> Http {
    Http::start_as(&["--http", "127.0.0.1:0"], |_, _| {})
}

/// Has a program print so many bytes, and says where they are kept.
fn printed(run: impl FnOnce(Value) -> Value, bytes: usize) -> String {
    let code = format!("print('x' * {})", bytes - 1);
    let result = run(json!({ "code": code, "language": "python", "timeout": 60 }));
    let id = result["_meta"]["dev.hotcell/run"]["id"].as_str();
    format!("run://{}/stdout", id.expect("the run's id"))
}

#[test]
fn bodies_that_are_never_finished_do_not_fill_the_memory() {
    let server = over_http();
    server.serves();
    let before = server.server.memory("VmRSS");
    let usual = server.usual().join("\r\n");
    let head = format!("{POST}\r\n{usual}\r\nContent-Length: {}\r\n\r\n", 8 << 20);
    let piece = vec![b' '; 7 << 20];
    let mut open: Vec<TcpStream> = Vec::new();
    for _ in 0..60 {
        let mut stream = server.connect();
        // One that is refused is closed before it has sent all.
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(&piece);
        open.push(stream);
    }
    let grown = server.server.memory("VmHWM").saturating_sub(before);
    assert!(grown < CEILING, "{grown} KiB more");
    // A small request is served all the while, and a large one is told why not.
    server.serves();
    let large = json!({ "jsonrpc": "2.0", "id": 7, "method": "ping", "params": { "x": "y".repeat(6 << 20) } });
    let refused = server.post(&large);
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(refused.text().contains("busy"), "{}", refused.text());
    // Control: when they are gone it is served too.
    drop(open);
    let served = || server.post(&large).status == 200;
    assert!(wait_until(PATIENCE, served).is_some());
}

#[test]
fn answers_that_nobody_reads_do_not_fill_the_memory() {
    let server = over_http();
    let uri = printed(|arguments| server.call("run", arguments), 16 << 20);
    let before = server.server.memory("VmRSS");
    let read =
        json!({ "jsonrpc": "2.0", "id": 7, "method": "resources/read", "params": { "uri": uri } });
    let asked = request(POST, &server.usual(), read.to_string().as_bytes());
    let open: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(&asked).expect("a request");
            stream
        })
        .collect();
    // All have been looked at when the last is answered, in whatever way.
    server.serves();
    let is_settled = || {
        let [first, second] = [0, 1].map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(500));
            server.server.memory("VmRSS")
        });
        first.abs_diff(second) < 1 << 10
    };
    assert!(wait_until(PATIENCE, is_settled).is_some());
    let grown = server.server.memory("VmRSS").saturating_sub(before);
    // What is being written is there twice for a moment.
    assert!(grown < 2 * CEILING, "{grown} KiB more");
    server.serves();
    let mut answers: Vec<Answer> = Vec::new();
    for mut stream in open {
        answers.push(Answer::read(&mut stream));
    }
    let count = |has: fn(&Value) -> bool| {
        let messages = answers.iter().map(Answer::message);
        messages.filter(has).count()
    };
    let whole = count(|it| it["result"].is_object());
    let busy = count(|it| it["error"]["code"] == -32000 && it["id"] == 7);
    assert_eq!(whole + busy, 50);
    assert!(whole >= 4 && busy >= 10, "{whole} whole, {busy} busy");
    // Control: with nobody else it is had.
    let served = || server.post(&read).status == 200;
    assert!(wait_until(PATIENCE, served).is_some());
}

#[test]
fn one_kept_output_is_held_once_however_often_it_is_mentioned() {
    let mut client = Stdio::open(&[]);
    let uri = printed(|arguments| client.call("run", arguments), 20 << 20);
    let before = client.server.memory("VmRSS");
    let files: serde_json::Map<String, Value> = (0..20)
        .map(|at| (format!("f{at}"), json!({ "uri": uri })))
        .collect();
    let code = "import os; print(sum(os.path.getsize(it) for it in os.listdir('.') if it[0] == 'f'), open('f7').read(3))";
    let record = client.run(json!({
        "code": code, "language": "python", "files": files, "memory": "1g", "timeout": 60,
    }));
    assert_eq!(
        record["stdout"],
        format!("{} xxx\n", 20 * (20 << 20)),
        "{record}"
    );
    let grown = client.server.memory("VmHWM").saturating_sub(before);
    assert!(grown < 100 << 10, "{grown} KiB more for 400 MiB of files");
}

#[test]
fn kept_outputs_take_neither_descriptors_nor_memory() {
    // Records that are not written yet have a bound of their own.
    let mut client = Stdio::open(&["--no-record"]);
    // Files that no path leads to, other than those in memory, which are not for outputs.
    let open = |client: &Stdio| {
        let folder = format!("/proc/{}/fd", client.server.child.id());
        let all = fs::read_dir(folder).expect("its descriptors").flatten();
        let names = all.filter_map(|it| fs::read_link(it.path()).ok());
        let nameless = |name: &std::path::PathBuf| {
            let name = name.to_string_lossy();
            name.ends_with(" (deleted)") && !name.starts_with("/memfd:")
        };
        names.filter(nameless).count()
    };
    let first = printed(|arguments| client.call("run", arguments), 2 << 20);
    assert_eq!(open(&client), 1, "the control: it is in a file");
    let memory = client.server.memory("VmRSS");
    for size in [200 << 10, 2 << 20] {
        for _ in 0..60 {
            printed(|arguments| client.call("run", arguments), size);
        }
    }
    assert_eq!(open(&client), 1, "all 121 outputs are in one");
    let grown = client.server.memory("VmRSS").saturating_sub(memory);
    assert!(grown < 48 << 10, "{grown} KiB more for 130 MiB of outputs");
    // Control: they are there.
    let range = format!("{first}?offset=1000000&length=10");
    let piece = client.request("resources/read", json!({ "uri": range }));
    assert_eq!(
        piece["result"]["contents"][0]["text"],
        "x".repeat(10),
        "{piece}"
    );
}

#[test]
fn a_line_that_is_too_long_is_answered_under_its_id() {
    let mut client = Stdio::open(&[]);
    let long = "y".repeat(17 << 20);
    for line in [
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":\"first\",\"method\":\"ping\",\"params\":{{\"id\":1,\"x\":\"{long}\"}}}}\n"
        ),
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"params\":{{\"id\":1,\"x\":\"{long}\"}},\"id\":\"last\"}}\n"
        ),
    ] {
        client.write(line.as_bytes());
        let id = if line.contains("\"first\"") {
            "first"
        } else {
            "last"
        };
        let answer = client.answer(&json!(id));
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
    }
    client.ping();
}

/// Looking at each beside all others took such requests a minute, in which nobody else was answered.
#[test]
fn a_request_of_many_small_things_is_refused_by_their_number() {
    let mut client = Stdio::open(&[]);
    let files = |count: usize| -> Value {
        let named = (0..count).map(|number| (format!("{}/{number}", number % 7), json!("")));
        Value::Object(named.collect())
    };
    let imports: Vec<String> = (0..83_000).map(|it| format!("import m{it}")).collect();
    for (code, files, reason) in [
        (
            "print(1)",
            files(40_000),
            "40000 files, and 10,000 are allowed",
        ),
        (
            &imports.join("\n"),
            files(0),
            "packages, and 200 are allowed",
        ),
    ] {
        let facts = client.run(json!({ "language": "python", "code": code, "files": files }));
        assert_eq!(facts["status"], "rejected", "{facts}");
        let message = facts["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(reason), "{message}");
    }
    // Control: as many as are allowed are there.
    let code = "import os; print(sum(len(names) for _, _, names in os.walk('.')))";
    let asked = json!({ "language": "python", "code": code, "files": files(2_000) });
    let facts = client.run(asked);
    let printed = facts["stdout"].as_str();
    let count = printed.and_then(|it| it.trim().parse::<usize>().ok());
    assert!(count.is_some_and(|count| count >= 2_000), "{facts}");
}

/// Lists that are empty: three bytes each as text, and a hundred when they are read.
#[test]
fn a_request_is_counted_by_what_it_is_read_into() {
    let server = over_http();
    server.serves();
    let before = server.server.memory("VmRSS");
    let post = |values: usize, code: &str| {
        let list = "[],".repeat(values);
        let arguments = json!({ "code": code, "language": "python", "timeout": 600 });
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"run","arguments":{arguments},"x":[{list}0]}}}}"#
        );
        request(POST, &server.usual(), body.as_bytes())
    };
    let sleeps = post(200_000, "import time; time.sleep(500)");
    assert!(sleeps.len() < 700_000);
    let sends = || {
        let mut stream = server.connect();
        stream.write_all(&sleeps).expect("a request");
        stream
    };
    let mut open: Vec<TcpStream> = (0..40).map(|_| sends()).collect();
    // All are read when a later one is answered: there is no room for it, or for so many values in any case. Of those that come while others are
    // being read, more may be refused than must be: another takes their place.
    let told = |values: usize| server.exchange(&post(values, "print(1)"));
    let is_full = || {
        let is_full = told(200_000).status == 503;
        if !is_full {
            open.push(sends());
        }
        is_full
    };
    assert!(wait_until(PATIENCE, is_full).is_some());
    // While others are being read there may be no room to count them: that is busy too.
    let is_refused = || {
        let refused = told(600_000);
        refused.status == 400 && refused.message()["id"] == 7
    };
    assert!(wait_until(PATIENCE, is_refused).is_some());
    let grown = server.server.memory("VmHWM").saturating_sub(before);
    assert!(grown < CEILING, "{grown} KiB more");
    server.serves();
    // Control: when they are gone it is served.
    drop(open);
    let served = || {
        let answer = told(200_000);
        let is_done = |it: Value| it["result"]["structuredContent"]["stdout"] == "1\n";
        answer.status == 200 && is_done(answer.message())
    };
    assert!(wait_until(PATIENCE, served).is_some());
    // And what it took is given back.
    let is_given_back = || server.server.memory("VmRSS") < before + (64 << 10);
    assert!(wait_until(PATIENCE, is_given_back).is_some());
}

#[test]
fn what_a_session_has_of_its_client_is_bounded() {
    let server = over_http();
    let open = |bytes: usize| {
        let said = json!({ "experimental": { "x": "y".repeat(bytes) } });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": said, "clientInfo": { "name": "n", "version": "1" } });
        let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        server.post(&asked)
    };
    let refused = open(1 << 20);
    assert_eq!(refused.message()["error"]["code"], -32602);
    assert_eq!(refused.header("mcp-session-id"), None);
    // Control: what any client says of itself is far less.
    let opened = open(8 << 10);
    let session = opened.header("mcp-session-id").expect("a session");
    let mut headers = server.usual();
    headers.push(format!("Mcp-Session-Id: {session}"));
    let watch = |number: usize, bytes: usize| {
        let uri = format!("run://{number}/files/{}", "z".repeat(bytes));
        let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": { "uri": uri } });
        let answer = server.ask(POST, &headers, asked.to_string().as_bytes());
        answer.message()["result"].is_object()
    };
    let long = (0..10).filter(|number| watch(*number, 10_000)).count();
    assert_eq!(long, 3);
    assert!(watch(10, 20), "the control: there is room for a short one");
}

/// Each leaves five pictures, as large as an answer may have them.
#[test]
fn jobs_that_have_ended_are_held_in_bytes() {
    let mut client = Stdio::open(&["--no-record"]);
    let code = "import os, struct, zlib\n\
        chunk = lambda kind, data: struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))\n\
        for number in range(5):\n \
            rows = b''.join(b'\\0' + os.urandom(512 * 3) for _ in range(512))\n \
            open(f'{number}.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 512, 512, 8, 2, 0, 0, 0)) + chunk(b'IDAT', zlib.compress(rows, 0)) + chunk(b'IEND', b''))\n";
    let job = |client: &mut Stdio| {
        let asked = json!({ "code": code, "language": "python", "background": true });
        let started = client.run(asked);
        let id = started["job"].as_str().expect("a job").to_owned();
        let ended = client.call("session", json!({ "job": id, "wait": 50 }));
        (id, ended)
    };
    let pictures = |answer: &Value| {
        let content = answer["content"].as_array().expect("content");
        content.iter().filter(|it| it["type"] == "image").count()
    };
    let (first, answer) = job(&mut client);
    // The control: they are in the answer.
    assert_eq!(pictures(&answer), 5, "{}", answer["structuredContent"]);
    let before = client.server.memory("VmRSS");
    let mut last = String::new();
    for _ in 0..30 {
        last = job(&mut client).0;
    }
    let grown = client.server.memory("VmRSS").saturating_sub(before);
    assert!(grown < 110 << 10, "{grown} KiB more for 157 MiB of answers");
    assert_eq!(pictures(&client.call("session", json!({ "job": last }))), 5);
    let gone = client.call("session", json!({ "job": first }));
    assert_eq!(gone["structuredContent"]["status"], "rejected", "{gone}");
}
