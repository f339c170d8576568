//! `serve --as code-runner`: what clients of mcp-server-code-runner rely on.
//!
//! This file has its interface, row by row (A1 to A10 of our list of features);
//! `defects` has what was wrong with it and must be right here.

mod defects;

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio as Piped};
use std::time::Duration;

use serde_json::{Value, json};

use crate::raw::http::{Http, call};
use crate::raw::{Started, Stdio};
use crate::support::example;

const MODE: [&str; 2] = ["--as", "code-runner"];

const IDS: &str = "javascript php python perl perl6 ruby go lua groovy powershell bat shellscript \
    fsharp csharp vbscript typescript coffeescript scala swift julia crystal ocaml r applescript \
    clojure racket scheme ahk autoit dart haskell nim lisp kit v sass scss";

fn snippet(language: &str, code: &str) -> Value {
    json!({ "code": code, "languageId": language })
}

/// The text of a result that has nothing else.
fn text(result: &Value) -> &str {
    let blocks = result["content"].as_array().expect("content");
    assert_eq!(blocks.len(), 1, "{result}");
    blocks[0]["text"].as_str().expect("a text block")
}

#[test]
fn a1_a_snippet_answers_with_exactly_what_it_printed() {
    let mut client = Stdio::open(&MODE);
    let result = client.call("run-code", snippet("javascript", "console.log(5+6)"));
    assert_eq!(text(&result), "11\n");
    assert_eq!(result["isError"], false);
    assert_eq!(result["structuredContent"]["status"], "ok");
    assert_eq!(result["structuredContent"]["stdout"], "11\n");

    let result = client.call("run-code", snippet("python", "pass"));
    assert_eq!(text(&result), "");
    assert_eq!(result["isError"], false);
}

#[test]
fn a2_all_37_ids_are_offered_and_each_runs_or_says_why_not() {
    let mut client = Stdio::open(&MODE);
    let listed = client.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().expect("tools");
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0]["name"], "run-code");
    let schema = &tools[0]["inputSchema"];
    let ids: Vec<&str> = IDS.split_whitespace().collect();
    assert_eq!(ids.len(), 37);
    assert_eq!(schema["properties"]["languageId"]["enum"], json!(ids));
    assert_eq!(schema["required"], json!(["code", "languageId"]));

    let hello = [
        ("javascript", "console.log('hello')"),
        ("python", "print('hello')"),
        ("shellscript", "echo hello"),
    ];
    for (id, code) in hello {
        let result = client.call("run-code", snippet(id, code));
        assert_eq!(text(&result), "hello\n", "{id}");
    }
    for id in ids {
        let call = client.begin_call("run-code", snippet(id, "1"));
        // Where everything is installed, this meets every compiler at its slowest.
        let answer = client.answer_within(&call, Duration::from_secs(300));
        let result = answer["result"].clone();
        let record = &result["structuredContent"];
        if record["status"] == "rejected" {
            let kind = record["error"]["kind"].as_str().expect("a kind");
            let honest = ["missing_runtime", "unsupported_platform"].contains(&kind);
            assert!(honest, "{id}: {record}");
            assert_eq!(result["isError"], true);
            let said = text(&result).to_lowercase();
            assert!(said.contains("nothing was executed"), "{result}");
        }
    }
}

#[test]
fn a3_an_interpreter_is_found_in_the_servers_path() {
    // A definition of the user's, so that this does not depend on what is built in.
    let lua = r#"
        name = "Lua"
        runtime.commands = ["lua", "lua5.4", "luajit"]
        source.file = "main.lua"
        run.argv = ["{runtime}", "{file}"]
    "#;
    let start = |with_lua: bool| {
        let mut client = Stdio::start_as(&MODE, |command, home| {
            let languages = home.join(".config/hotcell/languages");
            fs::create_dir_all(&languages).expect("a folder");
            fs::write(languages.join("lua.toml"), lua).expect("a definition");
            let bin = home.join("fake/bin");
            fs::create_dir_all(&bin).expect("a folder");
            if with_lua {
                // A shell under another name is an interpreter like any other.
                fs::copy("/bin/bash", bin.join("lua")).expect("a fake");
                let mode = fs::Permissions::from_mode(0o755);
                fs::set_permissions(bin.join("lua"), mode).expect("its mode");
            }
            command.env("PATH", bin);
        });
        client.initialize("2025-11-25");
        client.call("run-code", snippet("lua", "echo fake $0"))
    };
    let result = start(true);
    assert_eq!(text(&result), "fake main.lua\n", "{result}");
    let result = start(false);
    assert_eq!(result["isError"], true);
    assert_eq!(
        result["structuredContent"]["error"]["kind"],
        "missing_runtime"
    );
    for name in ["lua", "lua5.4", "luajit"] {
        assert!(text(&result).contains(name), "{result}");
    }
}

/// A shell under another name, in a folder that is the server's `PATH`.
fn fake_lua(command: &mut Command, home: &std::path::Path) {
    let bin = home.join("fake/bin");
    fs::create_dir_all(&bin).expect("a folder");
    fs::copy("/bin/bash", bin.join("lua")).expect("a fake");
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(bin.join("lua"), mode).expect("its mode");
    command.env("PATH", bin);
}

#[test]
fn a3_the_users_own_interpreter_comes_before_the_built_in_one() {
    let code = "echo fake $0";
    let mut client = Stdio::open_as(&MODE, fake_lua);
    let result = client.call("run-code", snippet("lua", code));
    assert_eq!(text(&result), "fake main.lua\n", "{result}");
    // Control: `run` has the built-in one first, and where there is no other it is used here too.
    let mut own = Stdio::open_as(&[], fake_lua);
    let run = |language: &str, code: &str| json!({ "code": code, "language": language });
    assert_eq!(
        own.run(run("lua", "print(_VERSION)"))["stdout"],
        "Lua 5.4\n"
    );
    assert_eq!(own.run(run("lua@lua", code))["stdout"], "fake main.lua\n");
    assert_eq!(own.run(run("lua@host", code))["stdout"], "fake main.lua\n");
    assert_eq!(own.run(run("lua@embedded", "print(1)"))["stdout"], "1\n");
    let mut bare = Stdio::open_as(&MODE, |command, home| {
        command.env("PATH", home);
    });
    let result = bare.call("run-code", snippet("lua", "print(_VERSION)"));
    assert_eq!(text(&result), "Lua 5.4\n", "{result}");
}

#[test]
fn several_servers_are_replaced_at_once_and_none_advises_what_it_does_not_show() {
    let modes = ["code-runner", "code-runner-mcp", "code-execution-mode"];
    let flags: Vec<&str> = modes.iter().flat_map(|it| ["--as", it]).collect();
    let mut client = Stdio::open_as(&flags, |_, _| {});
    let listed = client.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().expect("tools").clone();
    let mut names: Vec<&str> = tools.iter().filter_map(|it| it["name"].as_str()).collect();
    names.sort_unstable();
    let all = [
        "javascript-code-runner",
        "python-code-runner",
        "run-code",
        "run_python",
    ];
    assert_eq!(names, all);
    for tool in &tools {
        let name = tool["name"].as_str().expect("a name");
        let shown = tool["inputSchema"]["properties"]
            .as_object()
            .expect("parameters");
        let codes = match name {
            "javascript-code-runner" => {
                ["throw 1", "fetch('http://a.test').catch(e => { throw e })"]
            }
            _ => [
                "input()",
                "import urllib.request as u; u.urlopen('http://a.test')",
            ],
        };
        for code in codes.into_iter().chain(["import nosuchmodule_xyz"]) {
            let mut arguments = json!({ "code": code });
            if shown.contains_key("languageId") {
                arguments["languageId"] = "python".into();
            }
            let result = client.call(name, arguments);
            assert_eq!(result["isError"], true, "{name} {code}: {result}");
            let hint = &result["structuredContent"]["error"]["hint"];
            let said = format!("{hint} {}", result["content"][0]["text"]);
            for parameter in ["stdin", "packages", "network", "timeout", "files"] {
                let is_shown = shown.contains_key(parameter);
                assert!(
                    is_shown || !said.contains(&format!("`{parameter}`")),
                    "{name} {code}: {said}"
                );
            }
            assert!(!said.contains("`--"), "{said}");
        }
    }
}

#[test]
fn a4_what_is_wrong_with_a_call_is_said_in_the_known_words() {
    let mut client = Stdio::open(&MODE);
    let cases = [
        (
            json!({ "code": "", "languageId": "python" }),
            "Code is required.",
        ),
        (json!({ "languageId": "python" }), "Code is required."),
        (
            json!({ "code": "1", "languageId": "" }),
            "Language ID is required.",
        ),
        (json!({ "code": "1" }), "Language ID is required."),
        (
            json!({ "code": "1", "languageId": "x" }),
            "Language 'x' is not supported.",
        ),
        // An alias of ours is none of theirs.
        (
            json!({ "code": "1", "languageId": "py" }),
            "Language 'py' is not supported.",
        ),
    ];
    for (arguments, words) in cases {
        let result = client.call("run-code", arguments.clone());
        assert_eq!(text(&result), words, "{arguments}");
        assert_eq!(result["isError"], true);
        assert_eq!(result["structuredContent"]["status"], "rejected");
    }
    let wrong = client.call("run-code", json!({ "code": 5, "languageId": "python" }));
    assert!(text(&wrong).contains("`code` must be a string"), "{wrong}");
    let wrong = client.call("run-code", json!({ "code": "1", "languageId": [] }));
    assert!(text(&wrong).contains("`languageId`"), "{wrong}");
}

#[test]
fn a5_stdout_stderr_and_exit_code_come_together() {
    let mut client = Stdio::open(&MODE);
    let code = "echo out; echo warned >&2";
    let result = client.call("run-code", snippet("shellscript", code));
    assert_eq!(text(&result), "out\nStderr: warned\n");
    assert_eq!(result["isError"], false);

    let result = client.call(
        "run-code",
        snippet("shellscript", &format!("{code}; exit 3")),
    );
    assert_eq!(text(&result), "out\nStderr: warned\nError: exit code 3");
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"]["exit_code"], 3);
}

#[test]
fn a6_each_run_has_its_own_file_with_the_right_extension() {
    let mut client = Stdio::open(&MODE);
    for (id, code, name) in [
        ("python", "raise ValueError", "main.py"),
        ("javascript", "throw new Error('x')", "main.js"),
        ("shellscript", "nosuchcommand", "main.sh"),
    ] {
        let result = client.call("run-code", snippet(id, code));
        let stderr = result["structuredContent"]["stderr"]
            .as_str()
            .expect("text");
        assert!(stderr.contains(name), "{id}: {stderr}");
    }
    assert_eq!(client.server.temporary_files(), [""; 0]);
}

#[test]
fn a7_stdio_is_the_transport_unless_another_is_named() {
    for flags in [&MODE[..], &["--as", "code-runner", "-t", "stdio"]] {
        let mut client = Stdio::start(flags);
        let result = client.initialize("2025-06-18");
        assert_eq!(result["serverInfo"]["name"], "Code Runner");
        assert!(client.close().is_some_and(|status| status.success()));
    }
}

#[test]
fn a8_http_is_stateless_and_has_only_post() {
    let server = Http::start_as(&["--as", "code-runner", "-t", "http", "-p", "0"], |_, _| {});
    assert!(server.address.ip().is_loopback());
    let hello = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
    });
    let answer = server.post(&hello);
    assert_eq!(
        answer.message()["result"]["serverInfo"]["name"],
        "Code Runner"
    );
    assert_eq!(answer.header("mcp-session-id"), None);
    let listed = server.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    assert_eq!(listed.message()["result"]["tools"][0]["name"], "run-code");
    let result = server.call("run-code", snippet("python", "print(6*7)"));
    assert_eq!(text(&result), "42\n");

    for method in ["GET", "DELETE"] {
        let session = format!("Mcp-Session-Id: {}", "0".repeat(32));
        for more in [vec![], vec![session]] {
            let headers = [server.usual(), more].concat();
            let answer = server.ask(&format!("{method} /mcp HTTP/1.1"), &headers, b"");
            assert_eq!(answer.status, 405);
            let message = answer.message();
            assert_eq!(message["error"]["code"], -32000);
            assert_eq!(message["error"]["message"], "Method not allowed.");
        }
    }
}

#[test]
fn a8_a_token_that_was_configured_is_asked_for_here_too() {
    let flags = ["--as", "code-runner", "--transport", "http", "--port", "0"];
    let secret = "a-token-of-some-length";
    let mut server = Http::start_as(&flags, |command, _| {
        command.env("HOTCELL_TOKEN", secret);
    });
    server.token = Some(secret.to_owned());
    let body = call("run-code", snippet("python", "print(1)")).to_string();
    let answer = server.ask(
        "POST /mcp HTTP/1.1",
        &server.without("authorization"),
        body.as_bytes(),
    );
    assert_eq!(answer.status, 401);
    assert_eq!(
        text(&server.call("run-code", snippet("python", "print(1)"))),
        "1\n"
    );
}

#[test]
fn a9_the_port_comes_from_the_flag_then_the_variable_then_3088() {
    let free = || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("its address").port()
    };
    let (flag, variable) = (free(), free());
    let http = ["--as", "code-runner", "-t", "http"];
    let flag_text = flag.to_string();
    let with_flag = [&http[..], &["-p", &flag_text]].concat();
    let server = Http::start_as(&with_flag, |command, _| {
        command.env("PORT", variable.to_string());
    });
    assert_eq!(server.address.port(), flag);
    let server = Http::start_as(&http, |command, _| {
        command.env("PORT", variable.to_string());
    });
    assert_eq!(server.address.port(), variable);
    // The usual port may be taken on this machine; which one it is, is said either way.
    let mut server = Started::new(&http, |_, _| {});
    crate::raw::wait_until(crate::raw::PATIENCE, || server.log().contains('\n'));
    assert!(server.log().contains("127.0.0.1:3088"), "{}", server.log());
    let _ = server.child.kill();
}

#[test]
fn a9_flags_that_make_no_sense_are_refused_with_exit_code_1() {
    let words = "Invalid transport. Must be either \"stdio\" or \"http\"";
    for (flags, words) in [
        (&["-t", "sse"][..], words),
        (&["--transport", ""], words),
        (&["-t", "http", "-p", "port"], "Invalid port."),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_hotcell"))
            .args(["serve", "--as", "code-runner"])
            .args(flags)
            .output()
            .expect("it starts");
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(output.stdout, b"");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(words), "{said}");
    }
    for flag in ["--version", "--help"] {
        let output = Command::new(env!("CARGO_BIN_EXE_hotcell"))
            .args(["serve", "--as", "code-runner", flag])
            .output()
            .expect("it starts");
        assert!(output.status.success(), "{flag}");
        assert!(!output.stdout.is_empty());
    }
}

/// The program is the example that users have, and nobody told it a port.
#[test]
fn a10_serve_from_rust_returns_the_bound_endpoint() {
    let Some(program) = example("serve") else {
        return;
    };
    let mut server = Http::start_as(&[], |command, home| {
        *command = Command::new(program);
        command.env("HOME", home).stdin(Piped::piped());
        command.stdout(Piped::piped()).stderr(Piped::piped());
    });
    let said = format!("port {}: ", server.address.port());
    assert!(server.server.log().starts_with(&said));
    let result = server.call("run-code", snippet("lua", "print(6 * 7)"));
    assert_eq!(text(&result), "42\n");
    // It ends when the value is dropped: nobody listens there any more.
    drop(server.server.child.stdin.take());
    assert!(server.server.child.wait().unwrap().success());
    assert!(TcpStream::connect(server.address).is_err());
}
