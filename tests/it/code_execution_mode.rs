//! `serve --as code-execution-mode`: what clients of mcp-server-code-execution-mode rely on, and what was wrong with it and must be right here.

mod defects;
mod places;

use std::fs;

use serde_json::{Value, json};

use crate::raw::Stdio;
use crate::support::has;

const MODE: [&str; 2] = ["--as", "code-execution-mode"];

/// A server with these variables, and the servers `studio` and `other`.
fn open(variables: &[(&str, &str)]) -> Stdio {
    Stdio::open_as(&MODE, |command, home| {
        let script = home.join("studio.py");
        fs::write(&script, include_str!("../servers/studio.py")).expect("a script");
        let folder = home.join(".config/hotcell");
        fs::create_dir_all(&folder).expect("a folder");
        let entry = |name| format!("[servers.{name}]\ncommand = 'python3'\nargs = [{script:?}]\n");
        fs::write(
            folder.join("config.toml"),
            entry("studio") + &entry("other"),
        )
        .expect("it");
        command.envs(variables.iter().copied());
    })
}

fn python(client: &mut Stdio, code: &str) -> Value {
    client.call("run_python", json!({ "code": code }))
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text block")
}

#[test]
fn c1_c12_the_tool_its_limits_and_its_messages() {
    if !has("python3") {
        return;
    }
    let mut client = open(&[
        ("MCP_BRIDGE_MAX_TIMEOUT", "3s"),
        ("MCP_BRIDGE_TIMEOUT", "2"),
    ]);
    let listed = client.request("tools/list", json!({}));
    let tool = &listed["result"]["tools"][0];
    assert_eq!(tool["name"], "run_python");
    let timeout = &tool["inputSchema"]["properties"]["timeout"];
    assert_eq!(
        (
            &timeout["maximum"],
            &timeout["default"],
            &timeout["minimum"]
        ),
        (&json!(3), &json!(2), &json!(1))
    );
    let mut call = |arguments: Value| client.call("run_python", arguments);
    for (arguments, status, message) in [
        (json!({}), "validation_error", "Missing 'code' argument"),
        (
            json!({ "code": " \n" }),
            "validation_error",
            "Missing 'code' argument",
        ),
        (
            json!({ "code": "1", "servers": "studio" }),
            "validation_error",
            "'servers' must be a list",
        ),
        (
            json!({ "code": "1", "timeout": "soon" }),
            "validation_error",
            "'timeout' must be an integer",
        ),
        (
            json!({ "code": "1", "servers": ["nobody"] }),
            "error",
            "Unknown MCP server: nobody",
        ),
    ] {
        let result = call(arguments);
        assert_eq!(result["structuredContent"]["status"], status, "{result}");
        assert_eq!(text(&result), format!("status: {status}\nerror: {message}"));
        assert_eq!(result["isError"], true);
    }
    // Out of range is clamped.
    let late = json!({ "code": "import time\nprint('begun', flush=True)\ntime.sleep(60)", "timeout": 9999 });
    let result = call(late);
    assert_eq!(
        text(&result),
        "status: timeout\nbegun\nerror: Execution timed out after 3s"
    );
    let structured = &result["structuredContent"];
    assert_eq!(structured["status"], "timeout");
    assert_eq!(structured["timeoutSeconds"], 3);
    assert_eq!(structured["stdout"], json!(["begun"]));
    let failed = call(json!({ "code": "import sys\nprint('x')\nsys.exit(3)" }));
    assert_eq!(
        text(&failed),
        "status: error\nexit: 3\nx\nerror: Sandbox exited with code 3"
    );
    assert_eq!(failed["structuredContent"]["exitCode"], 3);
    let silent = call(json!({ "code": "x = 1" }));
    assert_eq!(text(&silent), "Success (no output)");
    assert_eq!(
        silent["structuredContent"],
        json!({ "timeoutSeconds": 2, "summary": "Success (no output)" })
    );
    assert_eq!(silent["isError"], false);
}

#[test]
fn p29_memory_and_processes_are_bounded_by_variables() {
    if !has("python3") {
        return;
    }
    let forks = "import os, time\nn = 0\ntry:\n  while n < 40:\n    if os.fork() == 0: time.sleep(60)\n    n += 1\nexcept OSError: pass\nprint(n)";
    let much = "x = bytearray(300 << 20)\nprint(len(x))";
    let mut bounded = open(&[("MCP_BRIDGE_MEMORY", "128m"), ("MCP_BRIDGE_PIDS", "12")]);
    let ended = python(&mut bounded, much);
    assert_eq!(ended["isError"], true, "{ended}");
    let forked: u32 = text(&python(&mut bounded, forks)).trim().parse().unwrap();
    assert!(forked <= 12, "{forked}");
    // The control: within what it may have.
    let mut roomy = open(&[("MCP_BRIDGE_MEMORY", "1g"), ("MCP_BRIDGE_PIDS", "64")]);
    assert_eq!(text(&python(&mut roomy, much)), "314572800\n");
    assert_eq!(text(&python(&mut roomy, forks)), "40\n");
}

#[test]
fn c10_the_same_as_toon() {
    if !has("python3") {
        return;
    }
    let mut client = open(&[
        ("MCP_BRIDGE_OUTPUT_MODE", "toon"),
        ("MCP_BRIDGE_LOG_LEVEL", "DEBUG"),
        ("MCP_BRIDGE_IMAGE", "python:3.14-slim"),
        ("MCP_BRIDGE_CONTAINER_USER", "1:1"),
        ("MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT", "300"),
        ("MCP_BRIDGE_CPUS", "0.5"),
    ]);
    let result = python(&mut client, "print('a')\nprint()\nprint('b, c')");
    assert_eq!(
        text(&result),
        "```toon\nstdout[3]: a,\"\",\"b, c\"\ntimeoutSeconds: 30\nstatus: success\n```"
    );
    let bad = client.call("run_python", json!({}));
    assert_eq!(
        text(&bad),
        "```toon\nstatus: validation_error\nerror: Missing 'code' argument\nsummary: Missing 'code' argument\n```"
    );
    let empty = python(&mut client, "x = 1");
    assert_eq!(
        text(&empty),
        "```toon\ntimeoutSeconds: 30\nsummary: Success (no output)\nstatus: success\n```"
    );
    let late = "print('a', flush=True)\nimport time\ntime.sleep(60)";
    let late = client.call("run_python", json!({ "code": late, "timeout": 1 }));
    assert_eq!(
        text(&late),
        "```toon\nstatus: timeout\nstdout[1]: a\ntimeoutSeconds: 1\nerror: Execution timed out after 1s\n```"
    );
    let log = client.server.log();
    for name in ["IMAGE", "CONTAINER_USER", "RUNTIME_IDLE_TIMEOUT"] {
        assert!(
            log.contains(&format!("MCP_BRIDGE_{name} has no effect")),
            "{log}"
        );
    }
    // What has an effect is not among these.
    assert!(!log.contains("MCP_BRIDGE_CPUS"), "{log}");
    assert!(log.contains("DEBUG hotcell"), "{log}");
}

#[test]
fn c13_the_capabilities_are_a_resource() {
    let mut client = open(&[]);
    let uri = "resource://mcp-server-code-execution-mode/capabilities";
    let listed = client.request("resources/list", json!({}))["result"]["resources"].clone();
    let own = listed.as_array().expect("a list").iter();
    let own = own.filter(|it| it["uri"] == uri).collect::<Vec<_>>();
    assert_eq!(own[0]["name"], "code-execution-capabilities");
    assert_eq!(own[0]["mimeType"], "text/markdown");
    let read = client.request("resources/read", json!({ "uri": uri }));
    let contents = &read["result"]["contents"][0];
    assert_eq!(contents["mimeType"], "text/markdown");
    assert!(contents["text"].to_string().contains("search_tool_docs"));
    let unknown = client.request("resources/read", json!({ "uri": "resource://x" }));
    let error = &unknown["error"];
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-32602), &json!("Unknown resource: resource://x"))
    );
}

#[test]
fn an_unknown_tool_is_a_result_as_that_server_gives_it() {
    let call = json!({ "name": "x", "arguments": {} });
    let unknown = open(&[]).request("tools/call", call.clone());
    let wanted = json!({
        "content": [{ "type": "text", "text": "status: error\nerror: Unknown tool: x" }],
        "structuredContent": { "status": "error", "error": "Unknown tool: x", "summary": "Unknown tool: x" },
        "isError": true,
    });
    assert_eq!(unknown["result"], wanted, "{unknown}");
    // Control: without that mode it is an error of the protocol.
    let mut plain = Stdio::open_as(&[], |_, _| {});
    let unknown = plain.request("tools/call", call);
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

#[test]
fn c8_servers_is_a_list_of_those_that_may_be_called() {
    if !has("python3") {
        return;
    }
    let mut client = open(&[]);
    let code = "print(await runtime.list_servers(), runtime.discovered_servers())\n\
        print((await runtime.call_tool('studio', 'say', {'text': 'x'}))['content'][0]['text'])\n\
        try:\n    await runtime.call_tool('other', 'say', {'text': 'x'})\nexcept RuntimeError as error:\n    print(error)";
    let narrow = client.call(
        "run_python",
        json!({ "code": code, "servers": ["studio", "studio"] }),
    );
    assert_eq!(
        text(&narrow),
        "('studio',) ('other', 'studio')\nx\nServer 'other' is not available\n"
    );
    assert_eq!(narrow["structuredContent"]["servers"], json!(["studio"]));
    // Control: without the list all of them may be.
    let all = python(&mut client, code);
    assert_eq!(text(&all), "('other', 'studio') ('other', 'studio')\nx\n");
}
