//! The cases of the category `protocol`: hostile bytes on standard input.

mod values;

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Case, code, long, stdio, unharmed, unopened};
use crate::raw::{PATIENCE, Stdio, fresh_word, processes_with, wait_until};

pub const CASES: &[Case] = &[
    ("PRO-01", malformed_json),
    ("PRO-02", deep_nesting),
    ("PRO-03", values::hostile_ids),
    ("PRO-04", duplicate_ids_in_flight),
    ("PRO-05", values::wrong_arguments),
    ("PRO-06", lifecycle_out_of_order),
    ("PRO-07", batch_bombs),
    ("PRO-08", cancellation_races),
    ("PRO-09", notification_flood),
    ("PRO-10", hostile_bytes),
    ("PRO-11", values::duplicate_keys),
    ("PRO-15", values::uris_and_cursors),
];

/// What a busy machine may need, and less than the half minute after which a [`sleeper`] ends by itself.
pub const SOON: Duration = Duration::from_secs(20);

/// Sends a line and takes the fault that answers it.
fn fault(client: &mut Stdio, line: &[u8]) -> Value {
    client.write(line);
    client.write(b"\n");
    let shown = || String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
    let Some(answer) = client.next(PATIENCE) else {
        panic!("no answer to {:?}", shown());
    };
    assert!(code(&answer) < 0, "{:?} was answered by {answer}", shown());
    // What we say about nonsense is short, whatever its size.
    assert!(answer.to_string().len() < 2000, "{answer}");
    client.ping();
    answer
}

/// A call that can be seen to run: its program has `word` among its arguments.
fn sleeper(word: &str, seconds: u32) -> Value {
    json!({ "code": format!("sleep {seconds}"), "language": "bash", "args": [word] })
}

fn malformed_json() {
    let mut client = stdio(&[]);
    for (line, expected) in [
        (&br#"{"jsonrpc":"2.0","id":1,"method":"ping""#[..], -32700),
        (b"not json", -32700),
        (br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (br#"{"id":1,"method":"ping"}"#, -32600),
        (b"[]", -32600),
        (b"\"x\"", -32600),
        (b"42", -32600),
        (b"null", -32600),
        (b"{}", -32600),
    ] {
        let answer = fault(&mut client, line);
        assert_eq!(code(&answer), expected, "{answer}");
    }
    client.write(b"\n   \n\r\n");
    unharmed(client);
}

fn deep_nesting() {
    let mut client = stdio(&[]);
    const DEEP: usize = 1_000_000;
    fault(&mut client, "[".repeat(DEEP).as_bytes());
    fault(&mut client, r#"{"a":"#.repeat(DEEP).as_bytes());
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let nested = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"run","arguments":{{"code":"print(1)","language":"python","files":{nested}}}}}}}"#
        );
        fault(&mut client, line.as_bytes());
    }
    // Control: what is not too deep is read.
    let nested = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let line = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"ping","params":{{"a":{nested}}}}}"#);
    client.write(line.as_bytes());
    client.write(b"\n");
    assert_eq!(client.answer(&json!(5))["result"], json!({}));
    unharmed(client);
}

fn duplicate_ids_in_flight() {
    let mut client = stdio(&[]);
    let word = fresh_word();
    let call = |arguments: Value| {
        let params = json!({ "name": "run", "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
    };
    client.send(&call(sleeper(&word, 30)));
    wait_until(SOON, || !processes_with(&word).is_empty()).expect("the slow one runs");
    client.send(&call(
        json!({ "code": "print('fast')", "language": "python" }),
    ));
    let answer = client.answer(&json!(1));
    assert_eq!(code(&answer), -32600, "the second is refused: {answer}");
    client.notify("notifications/cancelled", json!({ "requestId": 1 }));
    wait_until(SOON, || processes_with(&word).is_empty()).expect("the first is gone");
    assert_eq!(client.next(Duration::from_millis(300)), None);
    // The id is free again.
    client.send(&call(
        json!({ "code": "print('fast')", "language": "python" }),
    ));
    let answer = client.answer(&json!(1));
    assert_eq!(answer["result"]["structuredContent"]["stdout"], "fast\n");
    unharmed(client);
}

fn lifecycle_out_of_order() {
    let word = fresh_word();
    let mut client = unopened(&[]);
    let call = json!({ "name": "run", "arguments": sleeper(&word, 30) });
    let answer = client.request("tools/call", call.clone());
    assert_eq!(code(&answer), -32602, "{answer}");
    let odd = client.initialize("1999-01-01");
    assert_eq!(odd["protocolVersion"], "2025-11-25");
    let again = client.initialize("2025-06-18");
    assert_eq!(again["protocolVersion"], "2025-06-18");
    for method in ["no/such", "rpc.x", "", "\u{0}", "tools/call/"] {
        let answer = client.request(method, json!({}));
        assert_eq!(code(&answer), -32601, "{method:?}: {answer}");
    }
    let unknown = client.request(&"m".repeat(1 << 20), json!({}));
    assert!(unknown.to_string().len() < 2000);
    // A request that wants no answer does nothing.
    client.notify("tools/call", call);
    let answer = fault(
        &mut client,
        br#"{"jsonrpc":"2.0","id":3,"method":"tools/list","params":[]}"#,
    );
    assert_eq!(code(&answer), -32602);
    assert_eq!(processes_with(&word), [""; 0], "nothing of this has run");

    // A client that never says that it is initialized is served.
    let mut silent = unopened(&[]);
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
    silent.request("initialize", hello);
    let record = silent.run(json!({ "code": "print(1)", "language": "python" }));
    assert_eq!(record["stdout"], "1\n");
    unharmed(silent);
    unharmed(client);
}

fn batch_bombs() {
    let ping = |id: usize| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let batch = |messages: Vec<String>| format!("[{}]", messages.join(","));
    let word = fresh_word();
    let call = |id: usize| {
        let params = json!({ "name": "run", "arguments": sleeper(&word, 30) });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
    };
    let mut client = stdio(&[]);
    for bomb in [
        batch((0..100_000).map(ping).collect()),
        batch((0..1000).map(call).collect()),
        batch(Vec::new()),
    ] {
        let answer = fault(&mut client, bomb.as_bytes());
        assert_eq!(code(&answer), -32600, "{answer}");
    }
    assert_eq!(processes_with(&word), [""; 0]);
    unharmed(client);

    // The one revision that has batches takes no more of them than it can do.
    let mut old = unopened(&["--max-runs", "2"]);
    old.initialize("2025-03-26");
    old.write(batch((0..1000).map(call).collect()).as_bytes());
    old.write(b"\n");
    let most = (0..20)
        .map(|_| {
            thread::sleep(Duration::from_millis(50));
            processes_with(&word).len()
        })
        .max();
    // A program is a shell and its `sleep`; only the shell has the word.
    assert!(most.is_some_and(|most| most <= 4), "{most:?} at once");
    drop(old);
    wait_until(SOON, || processes_with(&word).is_empty()).expect("they are gone");
}

fn cancellation_races() {
    let mut client = stdio(&[]);
    client.run(json!({ "code": ":", "language": "bash" }));
    let word = fresh_word();
    let step = if long() { 1 } else { 6 };
    for delay in (0..300).step_by(step) {
        let id = client.begin_call("run", sleeper(&word, 30));
        thread::sleep(Duration::from_millis(delay));
        client.notify("notifications/cancelled", json!({ "requestId": id }));
        let gone = wait_until(SOON, || processes_with(&word).is_empty());
        assert!(
            gone.is_some(),
            "the program outlives a cancel after {delay} ms"
        );
    }
    // Both in one write: the call has not begun when it is taken back.
    for id in 0..30 {
        let params = json!({ "name": "run", "arguments": sleeper(&word, 30) });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
        client.write(format!("{call}\n{cancel}\n").as_bytes());
    }
    client.ping();
    thread::sleep(Duration::from_millis(500));
    wait_until(SOON, || processes_with(&word).is_empty()).expect("they are gone");
    let finished = client.begin_call("run", json!({ "code": ":", "language": "bash" }));
    client.answer(&finished);
    for id in [
        finished,
        json!(1001),
        json!(987_654),
        json!(null),
        json!([1]),
        json!({ "a": 1 }),
        json!(1.5),
    ] {
        client.notify("notifications/cancelled", json!({ "requestId": id }));
    }
    client.notify("notifications/cancelled", json!({}));
    let id = client.begin_call("run", sleeper(&word, 30));
    for _ in 0..1000 {
        client.notify("notifications/cancelled", json!({ "requestId": id }));
    }
    wait_until(SOON, || processes_with(&word).is_empty()).expect("it is gone");
    client.ping();
    assert_eq!(
        client.next(Duration::from_millis(300)),
        None,
        "an answer after a cancel"
    );
    let server = client.server.child.id().to_string();
    unharmed(client);
    assert_eq!(control_groups(&server), [""; 0]);
}

/// Control groups with our name and this server's in theirs.
fn control_groups(server: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![std::path::PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let mut parts = name.split(['-', '.']);
            if parts.next() == Some("hotcell") && parts.any(|part| part == server) {
                found.push(name);
            }
            folders.push(entry.path());
        }
    }
    found
}

fn notification_flood() {
    let mut client = stdio(&[]);
    let before = client.server.memory("VmRSS");
    let kinds = [
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":424242}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/no/such","params":{"a":[1,2,3]}}"#,
    ];
    let flood = (kinds.join("\n") + "\n").repeat(250);
    for _ in 0..100 {
        client.write(flood.as_bytes());
        client.ping();
    }
    let grown = client.server.memory("VmRSS").saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KiB more");
    assert_eq!(client.next(Duration::from_millis(100)), None);
    unharmed(client);
}

fn hostile_bytes() {
    let mut client = stdio(&[]);
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let utf16: Vec<u8> = ping.iter().flat_map(|byte| [*byte, 0]).collect();
    for line in [
        b"\xff\xfe\xfd".to_vec(),
        b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}".to_vec(),
        [b"\xef\xbb\xbf", &ping[..]].concat(),
        [b"\xff\xfe", &utf16[..]].concat(),
        [&ping[..], b"\r", &ping[..]].concat(),
        [&ping[..20], b"\0", &ping[20..]].concat(),
        b"Content-Length: 40".to_vec(),
        vec![0xff; 10 << 20],
    ] {
        fault(&mut client, &line);
    }
    client.write(b"\r\n\r\n");
    client.write(ping);
    client.write(b"\r\n");
    assert_eq!(client.answer(&json!(1))["result"], json!({}));

    // A line without an end: bounded, and after its end all is as before.
    let before = client.server.memory("VmRSS");
    let piece = vec![b'a'; 1 << 20];
    for _ in 0..200 {
        client.write(&piece);
    }
    let peak = client.server.memory("VmHWM").saturating_sub(before);
    assert!(peak < 80 << 10, "{peak} KiB for one line");
    let answer = fault(&mut client, b"a");
    assert_eq!(code(&answer), -32600, "{answer}");
    unharmed(client);
}
