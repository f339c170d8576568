//! Messages that are well formed and mean harm.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};

use super::fault;
use crate::hostile_server::{code, says, stdio, unharmed};
use crate::raw::Stdio;

pub fn hostile_ids() {
    let mut client = stdio(&[]);
    let ping = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    for id in [
        "9223372036854775808",
        "9007199254740993",
        "-9007199254740993",
        "-0",
        "0",
        r#""""#,
        r#""a\u0062\/""#,
        r#""\u001b[2J""#,
    ] {
        client.write((ping(id) + "\n").as_bytes());
        assert!(
            client.next(crate::raw::PATIENCE).is_some(),
            "{id} is not answered"
        );
        let line = client.lines.last().expect("a line");
        assert!(
            says(line, &format!(r#""id":{id},"#)),
            "{id} came back as {line:?}"
        );
    }
    let long = format!("\"{}\"", "x".repeat(10 << 20));
    for id in [
        "1e400",
        "1.5",
        "1e2",
        "null",
        "true",
        "[]",
        "{}",
        r#""\ud800""#,
        &long,
    ] {
        let answer = fault(&mut client, ping(id).as_bytes());
        assert!([-32600, -32700].contains(&code(&answer)), "{answer}");
        assert!(answer["id"].is_null(), "{answer}");
    }
    fault(
        &mut client,
        br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
    );
    unharmed(client);
}

pub fn wrong_arguments() {
    let mut client = stdio(&[]);
    let base = |key: &str, value: Value| {
        let mut arguments = json!({ "code": "print('ran')", "language": "python" });
        arguments[key] = value;
        arguments
    };
    let hostile_env = json!({ "LD_PRELOAD": "x", "PATH": "", "A=B": "c", "": "x", "A": "\u{0}" });
    for (key, value) in [
        ("code", json!(5)),
        ("code", json!(null)),
        ("code", json!(["print(1)"])),
        ("code", json!("print(1)\u{0}")),
        ("language", json!("python3;id")),
        ("language", json!("../../bin/sh")),
        ("language", json!("PYTHON\u{0}")),
        ("language", json!(7)),
        ("timeout", json!(-1)),
        ("timeout", json!(0)),
        ("timeout", json!(true)),
        ("timeout", json!("soon")),
        ("memory", json!("lots")),
        ("env", hostile_env),
        ("files", json!({ "../x": "y" })),
        ("files", json!({ "/etc/x": "y" })),
        ("files", json!({ "a": { "uri": "file:///etc/passwd" } })),
        ("files", json!({ "main.py": "print(2)" })),
        ("files", json!([])),
        ("args", json!(["\u{0}"])),
        ("args", json!("x")),
        ("stdin", json!(5)),
        ("no_such", json!(1)),
    ] {
        let arguments = base(key, value);
        let result = client.call("run", arguments.clone());
        let record = &result["structuredContent"];
        assert_eq!(record["status"], "rejected", "{arguments}: {record}");
        assert_eq!(result["isError"], true);
        assert_eq!(record["stdout"], "");
        let message = record["error"]["message"].as_str().expect("text");
        assert!(message.ends_with("nothing was executed"), "{message}");
        // The property is named, or what it holds.
        let named = match key {
            "language" => "language",
            "args" => "arg",
            "files" => "",
            key => key,
        };
        assert!(message.contains(named), "{key}: {message}");
    }
    for many in [json!(1e308), json!(9_223_372_036_854_775_808_u64)] {
        let record = client.run(base("timeout", many));
        assert_eq!(record["stdout"], "ran\n", "{record}");
        let notes = record["notes"].to_string();
        assert!(notes.contains("time"), "the clamp is told: {record}");
    }
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"code":"print(1)","language":"python","timeout":NaN}}}"#;
    assert_eq!(code(&fault(&mut client, call.as_bytes())), -32700);
    let stdin = "s".repeat(50 << 20);
    let call = call.replace(r#""timeout":NaN"#, &format!(r#""stdin":"{stdin}""#));
    assert_eq!(code(&fault(&mut client, call.as_bytes())), -32600);
    // Faults of the protocol, not of the program.
    for params in [
        json!({}),
        json!({ "name": 5 }),
        json!({ "name": "no-such" }),
        json!({ "name": "run", "arguments": [] }),
        json!({ "name": "../run" }),
    ] {
        assert_eq!(code(&client.request("tools/call", params)), -32602);
    }
    unharmed(client);
}

pub fn duplicate_keys() {
    let mut client = stdio(&[]);
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","method":"tools/call"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"code":"1","code":"2"}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","name":"x","arguments":{}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"code":"\ud800","language":"python"}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"code":"1","timeout":1E9999}}}"#.to_owned(),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"{0}":1,"{0}":2}}}}"#, "k".repeat(1 << 20)),
    ] {
        fault(&mut client, line.as_bytes());
    }
    for key in ["__proto__", "constructor", &"k".repeat(1 << 20)] {
        let result = client.call(
            "run",
            json!({ "code": "print(1)", "language": "python", key: {} }),
        );
        assert_eq!(result["structuredContent"]["status"], "rejected");
        assert!(result.to_string().len() < 4000);
    }
    unharmed(client);
}

pub fn uris_and_cursors() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket option");
    let fetch = format!("http://{}/", listener.local_addr().expect("its address"));
    let mut client = stdio(&[]);
    let long = "x:".repeat(100_000);
    for uri in [
        "file:///etc/passwd",
        "artifact://../../x",
        &fetch,
        &long,
        "run://../stdout",
        "run://x/../../stdout",
        "run://%2e%2e/stdout",
        "run:///",
        "",
        "\u{0}",
    ] {
        refused(&mut client, "resources/read", json!({ "uri": uri }));
        refused(&mut client, "resources/subscribe", json!({ "uri": uri }));
    }
    let reference = |name: Value| json!({ "ref": { "type": "ref/prompt", "name": name }, "argument": { "name": "a", "value": "b" } });
    for (method, params) in [
        ("resources/read", json!({ "uri": 5 })),
        ("resources/read", json!({})),
        ("completion/complete", json!({})),
        ("completion/complete", json!({ "ref": 5, "argument": [] })),
        ("completion/complete", reference(json!(5))),
        ("completion/complete", reference(json!("no-such"))),
        ("prompts/get", json!({ "name": [] })),
        ("prompts/get", json!({ "name": "no-such" })),
        ("logging/setLevel", json!({ "level": 5 })),
        ("logging/setLevel", json!({ "level": "loud" })),
    ] {
        refused(&mut client, method, params);
    }
    for list in ["tools", "prompts", "resources", "resources/templates"] {
        for cursor in [
            json!("forged"),
            json!("p1"),
            json!("p18446744073709551616"),
            json!(5),
            json!(""),
        ] {
            refused(
                &mut client,
                &format!("{list}/list"),
                json!({ "cursor": cursor }),
            );
        }
    }
    std::thread::sleep(Duration::from_millis(100));
    assert!(listener.accept().is_err(), "something was fetched");
    unharmed(client);
}

fn refused(client: &mut Stdio, method: &str, params: Value) {
    let answer = client.request(method, params);
    assert_eq!(code(&answer), -32602, "{method}: {answer}");
    assert!(answer.to_string().len() < 2000, "{method}");
}
