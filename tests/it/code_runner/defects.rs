//! What mcp-server-code-runner does wrong (T-A1 to T-A12), done right.

use std::time::Duration;

use serde_json::{Value, json};

use super::{MODE, snippet, text};
use crate::raw::http::Http;
use crate::raw::{Stdio, fresh_word, processes_with, wait_until};

/// What a busy machine may need, and less than the minute after which the program ends by itself.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn ta1_programs_side_by_side_each_print_their_own() {
    let mut client = Stdio::open(&MODE);
    let ids: Vec<(Value, String)> = (0..50)
        .map(|n| {
            let word = format!("alpha-{n}");
            let (language, code) = match n % 3 {
                0 => ("javascript", format!("console.log('{word}')")),
                1 => ("python", format!("print('{word}')")),
                _ => ("shellscript", format!("echo {word}")),
            };
            (
                client.begin_call("run-code", snippet(language, &code)),
                word,
            )
        })
        .collect();
    for (id, word) in ids {
        let answer = client.answer(&id);
        assert_eq!(text(&answer["result"]), format!("{word}\n"));
    }
    assert_eq!(client.unasked(), [&Value::Null; 0]);
    assert_eq!(client.server.temporary_files(), [""; 0]);
}

#[test]
fn ta2_three_different_endings_are_three_different_results() {
    let mut client = Stdio::open(&MODE);
    let codes = [
        "import sys; print('warn only', file=sys.stderr)",
        "print('x' * 2_000_000)",
        "exit(3)",
    ];
    let ids = codes.map(|code| client.begin_call("run-code", snippet("python", code)));
    let [warned, long, failed] = ids.map(|id| client.answer(&id)["result"].clone());
    assert_eq!(text(&warned), "Stderr: warn only\n");
    assert_eq!(warned["isError"], false);
    assert_eq!(long["structuredContent"]["truncated"], true);
    assert_eq!(
        long["structuredContent"]["total_bytes"]["stdout"],
        2_000_001
    );
    assert_eq!(long["isError"], false);
    assert_eq!(text(&failed), "Error: exit code 3");
    assert_eq!(failed["isError"], true);
}

#[test]
fn ta3_a_warning_is_no_failure_and_takes_no_output_away() {
    let mut client = Stdio::open(&MODE);
    let code = "import warnings; warnings.warn('w'); print('out')";
    let result = client.call("run-code", snippet("python", code));
    assert_eq!(result["structuredContent"]["status"], "ok");
    assert_eq!(result["structuredContent"]["stdout"], "out\n");
    let stderr = result["structuredContent"]["stderr"]
        .as_str()
        .expect("text");
    assert!(stderr.contains("UserWarning: w"), "{stderr}");

    let code = "print('before'); raise ValueError('x')";
    let result = client.call("run-code", snippet("python", code));
    assert!(text(&result).starts_with("before\nStderr: "), "{result}");
}

#[test]
fn ta4_nothing_but_the_protocol_is_ever_on_stdout() {
    let mut client = Stdio::open(&MODE);
    client.call(
        "run-code",
        snippet("shellscript", "echo to stdout; echo to stderr >&2"),
    );
    client.call("run-code", snippet("javascript", "console.log({a: 1})"));
    client.call("run-code", snippet("klingon", "x"));
    assert!(client.close().is_some_and(|status| status.success()));
    // The client has already checked each line, from the first to the last.
    assert_eq!(client.lines.len(), 4);
}

#[test]
fn ta5_two_million_characters_are_an_answer_and_can_be_read_whole() {
    let mut client = Stdio::open(&MODE);
    let result = client.call("run-code", snippet("python", "print('x' * 2_000_000)"));
    assert_eq!(result["structuredContent"]["status"], "ok");
    let link = &result["content"][1];
    assert_eq!(link["type"], "resource_link", "{link}");
    assert_eq!(link["size"], 2_000_001);
    let preview = result["content"][0]["text"].as_str().expect("text");
    assert!(preview.len() < 30_000);
    let whole = client.request("resources/read", json!({ "uri": link["uri"] }));
    let whole = whole["result"]["contents"][0]["text"]
        .as_str()
        .expect("text");
    assert_eq!(whole.len(), 2_000_001);
    assert!(whole.bytes().take(2_000_000).all(|byte| byte == b'x'));
}

#[test]
fn ta6_an_endless_loop_ends_by_time_by_cancellation_and_with_the_server() {
    let mut client = Stdio::open(&MODE);
    let word = fresh_word();
    let endless = |timeout: f64| json!({ "code": "while(true){}", "languageId": "javascript", "args": [word], "timeout": timeout });
    let result = client.call("run-code", endless(1.0));
    assert_eq!(result["structuredContent"]["status"], "timeout");
    assert!(text(&result).starts_with("Error: "), "{result}");
    wait_until(SOON, || processes_with(&word).is_empty()).expect("it is gone");

    let id = client.begin_call("run-code", endless(60.0));
    wait_until(SOON, || !processes_with(&word).is_empty()).expect("it runs");
    client.notify("notifications/cancelled", json!({ "requestId": id }));
    wait_until(SOON, || processes_with(&word).is_empty()).expect("it is gone");

    client.begin_call("run-code", endless(60.0));
    wait_until(SOON, || !processes_with(&word).is_empty()).expect("it runs");
    assert!(client.close().is_some_and(|status| status.success()));
    wait_until(SOON, || processes_with(&word).is_empty()).expect("it is gone");
    // Neither of the two that were taken back was answered.
    assert_eq!(client.unasked(), [&Value::Null; 0]);
}

#[test]
fn ta7_a_program_that_reads_finds_the_end_at_once_and_a_hint() {
    let mut client = Stdio::open(&MODE);
    let result = client.call("run-code", snippet("python", "input()"));
    assert!(text(&result).contains("EOFError"), "{result}");
    let hint = result["structuredContent"]["error"]["hint"].as_str();
    // Its tool shows no parameter for input, so none is advised.
    assert!(
        hint.is_some_and(|hint| hint.contains("no input here")),
        "{result}"
    );

    let with = json!({ "code": "print(input()[::-1])", "languageId": "python", "stdin": "abc\n" });
    assert_eq!(text(&client.call("run-code", with)), "cba\n");
}

#[test]
fn ta8_a_page_of_another_origin_gets_nothing() {
    let server = Http::start_as(&["--as", "code-runner", "-t", "http", "-p", "0"], |_, _| {});
    let word = fresh_word();
    let code = format!("sleep 30; : {word}");
    let body = crate::raw::http::call("run-code", snippet("shellscript", &code)).to_string();
    let origin = "Origin: http://evil.example".to_owned();
    let foreign_host = [
        server.without("host"),
        vec![format!("Host: evil.example:{}", server.address.port())],
    ];
    for headers in [
        [server.usual(), vec![origin]].concat(),
        foreign_host.concat(),
    ] {
        let answer = server.ask("POST /mcp HTTP/1.1", &headers, body.as_bytes());
        assert_eq!(answer.status, 403, "{headers:?}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    assert_eq!(processes_with(&word), [""; 0]);
    // Nobody but loopback hears us: another address of this host refuses.
    let other = std::net::SocketAddr::from(([127, 0, 0, 2], server.address.port()));
    assert!(std::net::TcpStream::connect(other).is_err());
}

#[test]
fn ta9_the_owners_files_are_not_there() {
    let mut client = Stdio::start_as(&MODE, |_, home| {
        std::fs::create_dir(home.join(".ssh")).expect("a folder");
        std::fs::write(home.join(".ssh/id_rsa"), "the key").expect("a key");
    });
    client.initialize("2025-11-25");
    let home = client.server.home.path().display().to_string();
    for place in ["os.homedir()".to_owned(), format!("'{home}'")] {
        let code = format!(
            "const os = require('os');\n\
             process.stdout.write(require('fs').readFileSync({place} + '/.ssh/id_rsa'))"
        );
        let result = client.call("run-code", snippet("javascript", &code));
        assert_eq!(result["isError"], true);
        assert!(!result.to_string().contains("the key"), "{result}");
        assert!(text(&result).contains("ENOENT"), "{result}");
    }
}

#[test]
fn ta10_a_hundred_runs_leave_no_file() {
    let mut client = Stdio::open(&MODE);
    for _ in 0..10 {
        let ids: Vec<Value> = (0..10)
            .map(|_| client.begin_call("run-code", snippet("shellscript", "echo > /tmp/left")))
            .collect();
        for id in ids {
            assert_eq!(client.answer(&id)["result"]["isError"], false);
        }
    }
    assert_eq!(client.server.temporary_files(), [""; 0]);
    assert!(!std::path::Path::new("/tmp/left").exists());
}

#[test]
fn ta11_python_runs_where_there_is_only_python3() {
    let mut client = Stdio::start_as(&MODE, |command, home| {
        let bin = home.join("bin");
        std::fs::create_dir(&bin).expect("a folder");
        std::os::unix::fs::symlink("/usr/bin/python3", bin.join("python3")).expect("a link");
        command.env("PATH", bin);
    });
    client.initialize("2025-11-25");
    let result = client.call("run-code", snippet("python", "print(1)"));
    assert_eq!(text(&result), "1\n", "{result}");
}

#[test]
fn ta12_the_version_is_the_one_of_the_program() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_hotcell"))
        .arg("--version")
        .output()
        .expect("it starts");
    let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let mut client = Stdio::start(&MODE);
    let result = client.initialize("2025-11-25");
    let version = result["serverInfo"]["version"].as_str().expect("a version");
    assert!(
        printed.starts_with(&format!("hotcell {version} (")),
        "{printed}"
    );
}
