//! `serve --as code-runner-mcp`: what clients of code-runner-mcp rely on.
//!
//! This file has its interface, row by row (B1 to B13 of our list of features); `defects` has what
//! was wrong with it and must be right here.

mod defects;

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::packages::installer;
use crate::packages::registry::{Registry, wheel};
use crate::raw::Stdio;
use crate::support::{PATH, anyone, has, skip};

const MODE: [&str; 2] = ["--as", "code-runner-mcp"];
const OLD: &str = "2020-01-01T00:00:00Z";

/// A server with these variables, and what its packages come from.
pub fn open(registry: &Registry, variables: &[(&str, &str)]) -> Stdio {
    Stdio::open_as(&MODE, |command, _| {
        let own = installer().map(|it| format!("{}/bin:", it.display()));
        command
            .env("PATH", format!("{}{PATH}", own.unwrap_or_default()))
            .env("HOTCELL_PYPI_INDEX", registry.pypi())
            .env("HOTCELL_NPM_REGISTRY", registry.npm())
            .envs(variables.iter().copied());
    })
}

pub fn python(client: &mut Stdio, code: &str) -> Value {
    client.call("python-code-runner", json!({ "code": code }))
}

pub fn javascript(client: &mut Stdio, code: &str) -> Value {
    client.call("javascript-code-runner", json!({ "code": code }))
}

/// The text of a result: there is always one.
pub fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text block")
}

fn tools(client: &mut Stdio) -> Vec<Value> {
    let listed = client.request("tools/list", json!({}));
    let mut tools = listed["result"]["tools"].as_array().expect("tools").clone();
    // Python's first.
    tools.sort_by_key(|tool| std::cmp::Reverse(tool["name"].to_string()));
    tools
}

fn names(client: &mut Stdio) -> Vec<String> {
    let names = tools(client).into_iter();
    names
        .map(|tool| tool["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn b1_b3_b4_packages_are_installed_by_import_by_map_and_unasked() {
    if !has("python3") || installer().is_none() {
        return;
    }
    let registry = Registry::start();
    registry.add_file(
        "oddly-named",
        "oddly_named-1.0-py3-none-any.whl",
        OLD,
        &wheel(
            "oddly_named",
            "1.0",
            &[("oddmodule.py", "WORD = 'odd'\n")],
            &[],
        ),
    );
    registry.add(
        "plainthing",
        "1.0",
        OLD,
        &wheel(
            "plainthing",
            "1.0",
            &[("plainthing.py", "WORD = 'plain'\n")],
            &[],
        ),
    );
    let mut client = open(&registry, &[]);
    let listed = tools(&mut client);
    assert_eq!(
        listed[0]["inputSchema"]["properties"]["packages"]["type"],
        "object"
    );
    assert_eq!(listed[1]["inputSchema"]["required"], json!(["code"]));

    let mapped = client.call("python-code-runner", json!({ "code": "import oddmodule; print(oddmodule.WORD)", "packages": { "oddmodule": "oddly-named" } }));
    assert_eq!(
        (text(&mapped), &mapped["isError"]),
        ("odd\n", &false.into()),
        "{mapped}"
    );
    let found = python(&mut client, "import plainthing; print(plainthing.WORD)");
    assert_eq!(text(&found), "plain\n", "{found}");
    let unasked = client.call("python-code-runner", json!({ "code": "print(__import__(chr(112) + 'lainthing').WORD)", "packages": { "x": "plainthing" } }));
    assert_eq!(text(&unasked), "plain\n", "{unasked}");
    let missing = client.call(
        "python-code-runner",
        json!({ "code": "print(1)", "packages": { "x": "nowhere-to-be-found" } }),
    );
    assert_eq!(
        missing["structuredContent"]["error"]["kind"], "package_not_found",
        "{missing}"
    );
}

#[test]
fn b5_only_the_allowed_tools_are_there() {
    let registry = Registry::start();
    let both = ["python-code-runner", "javascript-code-runner"];
    for (value, expected) in [
        ("", &both[..]),
        ("all", &both),
        ("python", &both[..1]),
        ("JS", &both[1..]),
        ("javascript", &both[1..]),
    ] {
        let mut client = open(&registry, &[("ALLOWED_TOOLS", value)]);
        assert_eq!(names(&mut client), expected, "{value}");
    }
}

#[test]
fn b6_permissions_of_deno_become_grants() {
    if !has("node") {
        return;
    }
    let registry = Registry::start();
    let mut client = open(
        &registry,
        &[
            ("DENO_PERMISSION_ARGS", "--allow-env=FOO --frobnicate"),
            ("FOO", "seen"),
            ("BAR", "hidden"),
        ],
    );
    let env = javascript(&mut client, "console.log(process.env.FOO, process.env.BAR)");
    assert_eq!(text(&env), "seen undefined\n", "{env}");
    let denied = javascript(
        &mut client,
        "require('fs').readFileSync('/root/.ssh/id_rsa')",
    );
    assert!(
        denied["isError"] == true
            && text(&denied).contains("Fix: only these folders exist")
            && text(&denied).contains("/workspace"),
        "{denied}"
    );
    assert!(
        client.server.log().contains("--frobnicate"),
        "{}",
        client.server.log()
    );
    assert!(
        tools(&mut client)[1]["description"]
            .as_str()
            .unwrap()
            .contains("--allow-env=FOO")
    );
}

#[test]
fn b7_b9_a_folder_of_the_host_is_mounted_for_python_and_the_description_says_so() {
    if !has("python3") {
        return;
    }
    let registry = Registry::start();
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(
        folder.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o777),
    )
    .expect("its mode");
    let root = folder.path().to_str().expect("a path");
    let mut client = open(
        &registry,
        &[("NODEFS_ROOT", root), ("NODEFS_MOUNT_POINT", "/data")],
    );
    assert!(
        tools(&mut client)[0]["description"]
            .as_str()
            .unwrap()
            .contains("/data")
    );
    let written = python(
        &mut client,
        "open('/data/a.txt', 'w').write('from inside'); import os; print(os.listdir('/data'))",
    );
    assert_eq!(text(&written), "['a.txt']\n", "{written}");
    assert_eq!(
        fs::read_to_string(folder.path().join("a.txt")).expect("it is on the host"),
        "from inside"
    );
    // Control: without the variables there is no such folder.
    let mut client = open(&registry, &[]);
    assert!(python(&mut client, "open('/data/a.txt')")["isError"] == true);
    assert!(
        !tools(&mut client)[0]["description"]
            .as_str()
            .unwrap()
            .contains("/data")
    );
}

#[test]
fn b8_the_folder_for_packages_is_that_servers_variable() {
    if !has("python3") || installer().is_none() {
        return;
    }
    let registry = Registry::start();
    registry.add(
        "plainthing",
        "1.0",
        OLD,
        &wheel("plainthing", "1.0", &[("plainthing.py", "")], &[]),
    );
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("kept");
    let mut client = open(
        &registry,
        &[
            ("PYODIDE_PACKAGE_CACHE_DIR", place.to_str().unwrap()),
            ("PYODIDE_PACKAGE_BASE_URL", "http://x/"),
        ],
    );
    assert_eq!(
        text(&python(&mut client, "import plainthing; print(1)")),
        "1\n"
    );
    assert!(place.join("sets").is_dir());
    assert!(client.server.log().contains("HOTCELL_PYPI_INDEX"));
    let mut silent = open(
        &registry,
        &[("PYODIDE_PACKAGE_BASE_URL", "http://x/"), ("SILENT", "1")],
    );
    let _ = tools(&mut silent);
    assert_eq!(silent.server.log(), "");
}

#[test]
fn b10_b11_output_and_errors_are_in_its_words_with_a_fix() {
    if !has("python3") || !has("node") {
        return;
    }
    let registry = Registry::start();
    let mut client = open(&registry, &[]);
    assert_eq!(text(&python(&mut client, "pass")), "(no output)");
    assert!(
        text(&javascript(&mut client, "1")).starts_with("(no output)\n\nTip: use console.log()")
    );
    let both = python(
        &mut client,
        "import sys; print('out'); print('a\\nb', file=sys.stderr)",
    );
    assert_eq!(
        (text(&both), &both["isError"]),
        ("out\n[stderr] a\n[stderr] b\n", &false.into())
    );
    let late = client.call(
        "python-code-runner",
        json!({ "code": "print('before', flush=True)\nwhile True: pass", "timeout": 1 }),
    );
    assert_eq!(
        (
            text(&late).lines().next(),
            &late["structuredContent"]["status"]
        ),
        (Some("before"), &"timeout".into()),
        "{late}"
    );
    assert!(text(&late).contains("[err][py] timeout"), "{late}");
    let late = client.call(
        "javascript-code-runner",
        json!({ "code": "for(;;){}", "timeout": 1 }),
    );
    assert!(text(&late).contains("[err][js] timeout"), "{late}");

    let missing = python(&mut client, "import nosuchmod_xyz");
    assert!(
        text(&missing).contains("Fix: Name its package in `packages`"),
        "{missing}"
    );
    let syntax = python(&mut client, "print('a");
    assert!(text(&syntax).contains("Fix: in JSON"), "{syntax}");
    let denied = python(&mut client, "open('/usr/x', 'w')");
    assert!(
        text(&denied).contains("Fix: only these folders"),
        "{denied}"
    );
}

#[test]
fn b12_a_cancelled_call_is_dead_within_a_second() {
    if !has("python3") {
        return;
    }
    let registry = Registry::start();
    let mut client = open(&registry, &[]);
    let word = crate::raw::fresh_word();
    let code = format!(
        "import subprocess\nsubprocess.run(['sleep', '60', '{word}'][:2] + []) if 0 else None\nimport os\nos.execv('/bin/sh', ['{word}', '-c', 'while :; do :; done'])"
    );
    let id = client.begin_call("python-code-runner", json!({ "code": code }));
    let running = || !crate::raw::processes_with(&word).is_empty();
    assert!(crate::raw::wait_until(Duration::from_secs(20), running).is_some());
    client.notify("notifications/cancelled", json!({ "requestId": id }));
    let gone = crate::raw::wait_until(Duration::from_secs(5), || {
        crate::raw::processes_with(&word).is_empty()
    });
    assert!(
        gone.is_some_and(|took| took < Duration::from_secs(1)),
        "{gone:?}"
    );
}

#[test]
fn b13_python_may_await_at_the_top_and_by_asyncio() {
    if !has("python3") {
        return;
    }
    let registry = Registry::start();
    let mut client = open(&registry, &[]);
    let top = python(
        &mut client,
        "import asyncio\nasync def f():\n    return 7\nprint(await f(), __name__)\nawait asyncio.sleep(0)\nimport micropip\nawait micropip.install('x')",
    );
    assert_eq!(text(&top), "7 __main__\n", "{top}");
    let plain = python(
        &mut client,
        "import asyncio\nasync def f():\n    print(8)\nasyncio.run(f())",
    );
    assert_eq!(text(&plain), "8\n", "{plain}");
    let failed = python(
        &mut client,
        "import asyncio\nawait asyncio.sleep(0)\nraise ValueError('x')",
    );
    assert!(
        failed["isError"] == true && text(&failed).contains("program.py\", line 3"),
        "{failed}"
    );
}

#[test]
fn b2_javascript_and_typescript_run_with_npm_and_node_modules() {
    // The real registry: deno is one of our recipes.
    if !has("npm") {
        return;
    }
    let Some(hotcell) = anyone() else { return };
    let added = hotcell
        .command()
        .args(["languages", "add", "--prefer", "typescript"])
        .output();
    let added = added.expect("it can be started");
    if !added.status.success() {
        return skip(&format!(
            "no deno: {}",
            String::from_utf8_lossy(&added.stderr)
        ));
    }
    let home = hotcell.home();
    let mut client = Stdio::open_as(&MODE, |command, _| {
        command.env("HOME", &home).env("PATH", PATH);
    });
    let code = "import { z } from \"npm:zod\";\nimport fs from \"node:fs\";\nenum Colour { Red = 3 }\nfs.writeFileSync(\"a\", \"b\");\n\
        const x: number = await Promise.resolve(Colour.Red);\nconsole.log(z.string().parse(\"x\"), x, fs.readFileSync(\"a\", \"utf8\"));";
    let result = javascript(&mut client, code);
    assert_eq!(text(&result), "x 3 b\n", "{result}");
    let denied = javascript(
        &mut client,
        "console.log(await fetch(\"http://example.com\").then(r => r.status))",
    );
    assert_eq!(denied["isError"], true, "{denied}");
}

#[test]
fn b15_a_language_and_a_program_are_two_words_on_the_command_line() {
    let Some(hotcell) = anyone().filter(|_| has("python3") && has("node")) else {
        return;
    };
    assert_eq!(hotcell.run(&["py", "print(1)"]).out(), "1\n");
    assert_eq!(hotcell.run(&["javascript", "console.log(2)"]).out(), "2\n");
    assert_eq!(hotcell.run_with(b"print(3)", &["python"]).out(), "3\n");
    let file = hotcell.write("a.js", "console.log(4)");
    let file = file.to_str().expect("a path");
    assert_eq!(hotcell.run(&["js", "-f", file]).out(), "4\n");
    let typed = hotcell.write("a.ts", "const x: number = 6; console.log(x)");
    let typed = typed.to_str().expect("a path");
    assert_eq!(hotcell.run(&["-l", "js", "-f", typed]).out(), "6\n");
    assert_eq!(hotcell.run(&["js", "-f", typed]).out(), "6\n");
    // Inline beats a file, and a file standard input.
    assert_eq!(
        hotcell
            .run_with(b"print(5)", &["py", "-f", file, "-l", "js"])
            .out(),
        "4\n"
    );
    assert_eq!(
        hotcell
            .run_with(b"print(5)", &["py", "print(7)", "-f", file])
            .out(),
        "7\n"
    );
    // Its own texts, and behind them hints of ours: there are more languages than it has.
    for (arguments, text) in [
        (
            &["nolanguage", "print(1)"][..],
            r#"Unknown language: "nolanguage". Use "js" or "py"."#,
        ),
        (
            &["py"],
            "No code provided. Pass inline code, --file, or pipe via stdin.",
        ),
        (&["js", "1", "-p", "{"], r#"Invalid --packages JSON: "{""#),
        (
            &["py", "-f", "/no/such.py"],
            r#"Failed to read file "/no/such.py""#,
        ),
    ] {
        let told = hotcell.run_with(b"", arguments);
        let is_said = told.err().starts_with(&format!("hotcell: {text}"));
        assert_eq!((told.code, is_said), (Some(1), true), "{}", told.err());
    }
    // Control: what is not of this form has the exit code of bad arguments, which no program's is.
    for arguments in [
        &["-l", "py", "-c", ""][..],
        &["-p", "{", "-c", "1"],
        &["/no/such.py"],
    ] {
        let told = hotcell.run_with(b"", arguments);
        assert_eq!(told.code, Some(2), "{}", told.err());
    }
    assert_eq!(hotcell.run(&["--help"]).code, Some(0));
    let folder = hotcell.make_folder("shared");
    let arguments = [
        "py",
        "open('/data/x', 'w').write('y')",
        "--nodefs-root",
        folder.to_str().unwrap(),
        "--nodefs-mount",
        "/data",
    ];
    fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o777))
        .expect("its mode");
    let answer = hotcell.run(&arguments);
    assert_eq!(answer.code, Some(0), "{}", answer.err());
    assert_eq!(
        fs::read_to_string(folder.join("x")).expect("it is on the host"),
        "y"
    );
}

#[test]
fn b16_there_is_a_skill_whose_front_matter_can_be_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/skills/hotcell/SKILL.md");
    let text = fs::read_to_string(path).expect("it is there");
    let front = text
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---\n"))
        .expect("front matter")
        .0;
    let keys: Vec<(&str, &str)> = front
        .lines()
        .filter_map(|line| line.split_once(": "))
        .collect();
    assert_eq!(
        keys.iter().map(|it| it.0).collect::<Vec<_>>(),
        ["name", "description"]
    );
    assert_eq!(keys[0].1, "hotcell");
    assert!((50..1024).contains(&keys[1].1.len()));
}

/// A server on a machine that has no interpreter at all.
fn with_nothing(arguments: &[&str]) -> Stdio {
    Stdio::open_as(arguments, |command, home| {
        let empty = home.join("empty");
        fs::create_dir_all(&empty).expect("a folder");
        command.env("PATH", empty);
        // The server's own is of no use here: what is fetched is for this test.
        command.env("XDG_DATA_HOME", home.join("data"));
    })
}

#[test]
fn p36_python_and_deno_are_fetched_where_nothing_is_installed() {
    let mut client = with_nothing(&MODE);
    let result = python(&mut client, "import sys; print(sys.version_info[0])");
    if text(&result).contains("cannot reach") {
        return skip("no registry can be reached");
    }
    assert_eq!(text(&result), "3\n", "{result}");
    let told = result["structuredContent"]["notes"][0]
        .as_str()
        .expect("a note");
    assert!(told.starts_with("fetched python"), "{told}");
    let result = javascript(&mut client, "console.log(Object.keys(Deno.version).join())");
    assert_eq!(text(&result), "deno,v8,typescript\n", "{result}");
    let refused = javascript(&mut client, "Deno.readTextFileSync('/etc/shadow')");
    assert!(
        text(&refused).contains("\nFix: only these folders"),
        "{refused}"
    );
    // Control: elsewhere somebody has to say so, and is told how.
    let mut own = with_nothing(&[]);
    let refused = own.run(json!({ "code": "print(1)", "language": "python" }));
    assert_eq!(refused["error"]["kind"], "missing_runtime", "{refused}");
    let hint = refused["error"]["hint"].as_str().expect("a hint");
    assert!(hint.contains("hotcell languages add python"), "{hint}");
    // Whoever decides otherwise is heeded.
    let mut decided = Stdio::open_as(&MODE, |command, home| {
        let folder = home.join(".config/hotcell");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("config.toml"), "auto_install = false\n").expect("a file");
        command
            .env("PATH", &folder)
            .env("XDG_DATA_HOME", home.join("data"));
    });
    let result = python(&mut decided, "print(1)");
    assert_eq!(
        result["structuredContent"]["error"]["kind"], "missing_runtime",
        "{result}"
    );
}
