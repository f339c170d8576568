//! What was wrong with code-runner-mcp, T-B1 to T-B13 of our list: each program is one that it fails.

use serde_json::{Value, json};

use super::{javascript, open, python, text};
use crate::packages::installer;
use crate::packages::registry::Registry;
use crate::support::has;

#[test]
fn tb1_tb9_nothing_of_a_call_is_left_for_the_next() {
    if !has("python3") || !has("node") {
        return;
    }
    let mut client = open(&Registry::start(), &[]);
    assert_eq!(
        python(&mut client, "x = 1\nopen('/tmp/left', 'w').close()")["isError"],
        false
    );
    let next = python(
        &mut client,
        "import os; print(os.path.exists('/tmp/left')); print(x)",
    );
    assert!(
        text(&next).starts_with("False\n") && text(&next).contains("NameError"),
        "{next}"
    );
    assert_eq!(
        javascript(&mut client, "require('fs').writeFileSync('left', 'x')")["isError"],
        false
    );
    assert_eq!(
        text(&javascript(
            &mut client,
            "console.log(require('fs').existsSync('left'))"
        )),
        "false\n"
    );
}

#[test]
fn tb2_calls_side_by_side_do_not_mix_their_output() {
    if !has("python3") {
        return;
    }
    let mut client = open(&Registry::start(), &[]);
    let begin = |client: &mut crate::raw::Stdio, word: &str| {
        let code = format!("for i in range(1000): print('{word}', i)");
        client.begin_call("python-code-runner", json!({ "code": code }))
    };
    let ids: Vec<_> = ["a", "b", "c", "d"]
        .map(|word| (word, begin(&mut client, word)))
        .into();
    for (word, id) in ids {
        let answer = client.answer(&id);
        let printed = text(&answer["result"]).to_owned();
        assert_eq!(
            printed,
            (0..1000)
                .map(|i| format!("{word} {i}\n"))
                .collect::<String>()
        );
    }
}

#[test]
fn tb3_a_busy_program_keeps_nobody_waiting() {
    if !has("python3") {
        return;
    }
    let mut client = open(&Registry::start(), &[]);
    let busy = client.begin_call(
        "python-code-runner",
        json!({ "code": "while True: pass", "timeout": 5 }),
    );
    let _ = client.request("tools/list", json!({}));
    assert_eq!(
        client.unasked(),
        [&Value::Null; 0],
        "the list waited for it"
    );
    assert_eq!(
        client.answer(&busy)["result"]["structuredContent"]["status"],
        "timeout"
    );
}

#[test]
fn tb4_there_is_no_way_from_python_to_the_host() {
    if !has("python3") {
        return;
    }
    let mut client = open(&Registry::start(), &[]);
    let result = python(
        &mut client,
        "import js; print(js.Deno.readTextFileSync('/etc/hostname'))",
    );
    assert_eq!(
        result["structuredContent"]["error"]["kind"], "missing_module",
        "{result}"
    );
    assert_eq!(result["structuredContent"]["error"]["module"], "js");
    assert_eq!(
        text(&python(&mut client, "print(open('/etc/hostname').read())")),
        "sandbox\n\n"
    );
}

#[test]
fn tb5_tb10_an_exit_code_is_a_failure_and_ends_only_its_program() {
    if !has("python3") || !has("node") {
        return;
    }
    let mut client = open(&Registry::start(), &[]);
    for result in [
        javascript(&mut client, "process.exit(3)"),
        python(&mut client, "import sys; sys.exit(3)"),
    ] {
        let facts = &result["structuredContent"];
        assert_eq!(
            (&facts["status"], &facts["exit_code"], &result["isError"]),
            (&"failed".into(), &3.into(), &true.into()),
            "{result}"
        );
    }
    assert_eq!(text(&python(&mut client, "print(1)")), "1\n");
}

#[test]
fn tb6_permission_for_the_environment_is_not_the_servers_own() {
    if !has("node") {
        return;
    }
    let variables = [
        ("DENO_PERMISSION_ARGS", "--allow-env"),
        ("MY_TOKEN", "sbx-canary"),
    ];
    let mut client = open(&Registry::start(), &variables);
    let result = javascript(&mut client, "console.log(JSON.stringify(process.env))");
    assert!(
        text(&result).contains("PATH") && !text(&result).contains("sbx-canary"),
        "{result}"
    );
}

#[test]
fn tb7_a_program_has_its_standard_input() {
    if !has("node") {
        return;
    }
    let mut client = open(&Registry::start(), &[]);
    let arguments = json!({ "code": "process.stdin.on('data', d => console.log('got', String(d)))", "stdin": "x" });
    assert_eq!(
        text(&client.call("javascript-code-runner", arguments)),
        "got x\n"
    );
}

#[test]
fn tb8_a_package_that_cannot_be_installed_is_an_error_with_the_resolvers_reason() {
    if !has("python3") || installer().is_none() {
        return;
    }
    let registry = Registry::start();
    registry.add_file(
        "sourceonly",
        "sourceonly-1.0.tar.gz",
        "2020-01-01T00:00:00Z",
        b"none",
    );
    let mut client = open(&registry, &[]);
    let result = python(&mut client, "print('ran')\nimport sourceonly");
    let facts = &result["structuredContent"];
    assert_eq!(
        (
            &facts["error"]["kind"],
            &facts["stdout"],
            &facts["error"]["module"]
        ),
        (
            &"package_not_found".into(),
            &"".into(),
            &"sourceonly".into()
        ),
        "{result}"
    );
    assert!(text(&result).contains("no usable wheels"), "{result}");
}

#[test]
fn tb11_a_program_that_eats_memory_ends_alone() {
    if !has("python3") {
        return;
    }
    let mut client = open(&Registry::start(), &[]);
    assert_eq!(text(&python(&mut client, "print(1)")), "1\n");
    let before = client.server.memory("VmRSS");
    let result = python(
        &mut client,
        "x = []\nwhile True: x.append(bytearray(10 ** 7))",
    );
    assert_eq!(result["structuredContent"]["status"], "memory", "{result}");
    let after = client.server.memory("VmRSS");
    assert!(after < before + (32 << 20), "{before} {after}");
}

#[test]
fn tb12_it_starts_and_runs_without_a_network() {
    if !has("python3") {
        return;
    }
    let registry = Registry::start();
    let variables = [
        ("HOTCELL_PYPI_INDEX", "http://127.0.0.1:9/simple"),
        ("HTTPS_PROXY", "http://127.0.0.1:9"),
    ];
    let mut client = open(&registry, &variables);
    assert_eq!(
        text(&python(&mut client, "import json; print(json.dumps(1))")),
        "1\n"
    );
    assert_eq!(registry.asked(), 0);
}

#[test]
fn tb13_what_was_printed_before_an_error_is_kept() {
    if !has("python3") {
        return;
    }
    let mut client = open(&Registry::start(), &[]);
    let result = python(&mut client, "print('before'); raise ValueError('x')");
    assert!(
        text(&result).starts_with("before\n[stderr] Traceback"),
        "{result}"
    );
    assert_eq!(result["structuredContent"]["stdout"], "before\n");
}
