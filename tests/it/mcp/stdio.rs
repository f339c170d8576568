//! The transport over standard input and output, in both eras.

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, SOON, hello, is_running, marker, modern, sleeper, wait_until_running};
use crate::support::left::spawner;

#[test]
fn both_eras_are_served_in_one_process_in_any_order() {
    let mut client = Client::start(&[]);
    let found = client.request("server/discover", modern(json!({})));
    assert_eq!(found["result"]["resultType"], "complete");
    let opened = client.request("initialize", hello("2025-06-18"));
    assert_eq!(opened["result"]["protocolVersion"], "2025-06-18");
    assert!(opened["result"].get("resultType").is_none());
    let now = client.request("tools/list", modern(json!({})));
    let then = client.request("tools/list", json!({}));
    assert_eq!(now["result"]["tools"], then["result"]["tools"]);
    assert_eq!(now["result"]["cacheScope"], "private");
    assert!(then["result"].get("ttlMs").is_none());
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
    ] {
        let refused = client.request(method, modern(hello("2025-11-25")));
        assert_eq!(refused["error"]["code"], -32601, "{method}");
    }
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn before_anything_was_opened_a_request_is_told_both_ways_to_open() {
    let mut client = Client::start(&[]);
    let refused = client.request("tools/list", json!({}));
    assert_eq!(refused["error"]["code"], -32602);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("initialize") && message.contains("_meta"),
        "{message}"
    );
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn our_version_is_the_one_of_the_command_line() {
    let mut client = Client::start(&[]);
    let opened = client.request("initialize", hello("2025-11-25"));
    let version = std::process::Command::new(env!("CARGO_BIN_EXE_hotcell"))
        .arg("--version")
        .output()
        .unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let served = opened["result"]["serverInfo"]["version"].as_str().unwrap();
    assert!(
        version.starts_with(&format!("hotcell {served} (")),
        "{version}"
    );
}

#[test]
fn the_first_answer_needs_no_runtime_and_no_home() {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_hotcell"))
        .arg("serve")
        .env_clear()
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let request =
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello("2025-11-25") });
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{request}").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["id"], 0);
}

#[test]
fn blank_and_broken_lines_disturb_nothing() {
    let mut client = Client::open(&[]);
    client.write(b"\n  \n\r\n");
    client.write(b"not json\n{\"jsonrpc\":\"2.0\"\n\xff\xfe\n[]\n42\nnull\n{}\n");
    for _ in 0..7 {
        let refused = client.wait(|message| message.get("error").is_some());
        assert!(refused.get("id").is_none(), "{refused}");
        let code = refused["error"]["code"].as_i64().unwrap();
        assert!([-32700, -32600].contains(&code), "{refused}");
    }
    // A line that is too long is passed over up to its end.
    let long = vec![b'x'; 17 << 20];
    client.write(&long);
    client.write(b"\n");
    let refused = client.wait(|message| message.get("error").is_some());
    assert_eq!(refused["error"]["code"], -32600);
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn an_id_that_is_in_use_is_refused_and_the_first_call_goes_on() {
    let mut client = Client::open(&[]);
    let call = json!({
        "jsonrpc": "2.0", "id": "same", "method": "tools/call",
        "params": { "name": "run", "arguments": {
            "code": "import time; time.sleep(0.5); print('first')", "language": "python" } },
    });
    client.send(&call);
    client.send(&call);
    let refused = client.wait(|message| message["id"] == "same");
    assert_eq!(refused["error"]["code"], -32600);
    let answered = client.wait(|message| message["id"] == "same");
    assert_eq!(answered["result"]["structuredContent"]["stdout"], "first\n");
}

#[test]
fn a_cancelled_call_is_not_answered_and_its_program_is_gone() {
    let mut client = Client::open(&[]);
    let marker = marker("cancel");
    let id = client.post(
        "tools/call",
        json!({ "name": "run", "arguments": sleeper(&marker) }),
    );
    wait_until_running(&marker, true);
    client.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
    }));
    let gone = wait_until_running(&marker, false);
    assert!(gone < SOON, "{gone:?}");
    let late = client.wait_for(Duration::from_millis(300), |message| message["id"] == id);
    assert_eq!(late, None);
    let next = client.run(json!({ "code": "print(1)", "language": "python" }));
    assert_eq!(next["isError"], false);
}

#[test]
fn when_its_input_ends_the_server_ends_and_leaves_nothing() {
    let mut client = Client::open(&[]);
    let marker = marker("eof");
    client.post(
        "tools/call",
        json!({ "name": "run", "arguments": sleeper(&marker) }),
    );
    wait_until_running(&marker, true);
    let took = client.close();
    assert!(took < SOON, "{took:?}");
    assert!(!is_running(&marker));
    assert!(client.child.wait().unwrap().success());
}

#[test]
fn a_killed_server_takes_its_programs_with_it() {
    let mut client = Client::open(&[]);
    let marker = marker("kill");
    client.post(
        "tools/call",
        json!({ "name": "run", "arguments": sleeper(&marker) }),
    );
    wait_until_running(&marker, true);
    client.child.kill().unwrap();
    let gone = wait_until_running(&marker, false);
    assert!(gone < SOON, "{gone:?}");
}

#[test]
fn a_subscription_is_acknowledged_first_and_ends_when_it_is_taken_back() {
    let mut client = Client::start(&[]);
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let id = client.post("subscriptions/listen", modern(filter));
    let first = client.wait(|_| true);
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    let params = &first["params"];
    assert_eq!(params["notifications"], json!({ "toolsListChanged": true }));
    assert_eq!(
        params["_meta"]["io.modelcontextprotocol/subscriptionId"],
        id
    );
    client.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
    }));
    // Its id is free again.
    let again = client.request("server/discover", modern(json!({})));
    assert!(again.get("result").is_some());
    assert!(
        client
            .wait_for(Duration::from_millis(100), |message| message["id"] == id)
            .is_none()
    );
}

#[test]
fn the_tool_list_is_short_and_the_same_for_everyone() {
    let mut client = Client::open(&[]);
    let first = client.request("tools/list", json!({}))["result"].clone();
    let _ = client.run(json!({ "code": "print(1)", "language": "python" }));
    assert_eq!(client.request("tools/list", json!({}))["result"], first);
    // 450 tokens of o200k, which counts four characters of these texts as one.
    let tools = first["tools"].as_array().unwrap();
    let shown: usize = tools
        .iter()
        .map(|tool| tool["description"].to_string().len() + tool["inputSchema"].to_string().len())
        .sum();
    assert!(shown < 1800, "{shown} characters");
    let run = tools.iter().find(|tool| tool["name"] == "run").unwrap();
    let annotations = &run["annotations"];
    assert_eq!(annotations["destructiveHint"], true);
    // A call may name hosts to reach.
    assert_eq!(annotations["openWorldHint"], true);
}

#[test]
fn a_batch_is_answered_in_the_one_revision_that_has_them() {
    let ping = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    let batch = json!([ping(1), { "jsonrpc": "2.0", "method": "notifications/x" }, ping(2), 5]);
    let mut client = Client::open(&[]);
    client.send(&batch);
    let refused = client.wait(|message| message.get("error").is_some());
    assert_eq!(refused["error"]["code"], -32600);
    client.request("initialize", hello("2025-03-26"));
    client.send(&batch);
    let mut answers = client.wait(Value::is_array);
    let answers = answers.as_array_mut().unwrap();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[0]["error"]["code"], -32600);
    assert_eq!(
        (&answers[1]["id"], &answers[2]["id"]),
        (&json!(1), &json!(2))
    );
    for bad in [json!([]), vec![ping(1); 65].into()] {
        client.send(&bad);
        let refused = client.wait(|message| message.get("error").is_some());
        assert_eq!(refused["error"]["code"], -32600);
    }
}

#[test]
fn a_client_that_reads_nothing_and_ends_keeps_nothing_alive() {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_hotcell"))
        .arg("serve")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let list =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": modern(json!({})) });
    let mut stdin = child.stdin.take().unwrap();
    // Far more answers than the pipe and the queue hold.
    let line = format!("{list}\n").repeat(100);
    let writer = std::thread::spawn(move || stdin.write_all(line.as_bytes()));
    std::thread::sleep(Duration::from_millis(300));
    // Its input ends with this thread; its output stays open and unread.
    let _ = writer.join();
    let start = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "it waits for ever"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_whose_spawner_is_killed_loses_what_runs_and_goes_on() {
    let mut client = Client::open(&[]);
    let marker = marker("spawner");
    let waiting = client.post(
        "tools/call",
        json!({ "name": "run", "arguments": sleeper(&marker) }),
    );
    wait_until_running(&marker, true);
    let spawner = spawner(client.child.id()).expect("a run has a spawner");
    let pid = rustix::process::Pid::from_raw(spawner as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let lost = client.answer(waiting);
    assert_eq!(lost["result"]["structuredContent"]["status"], "lost");
    wait_until_running(&marker, false);
    for _ in 0..2 {
        let again = client.run(json!({ "code": "print(6 * 7)", "language": "python" }));
        assert_eq!(again["structuredContent"]["stdout"], "42\n", "{again}");
    }
}
