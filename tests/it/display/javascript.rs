//! What JavaScript and TypeScript show, whatever runs them: node, deno and the engine that is inside hotcell.

use std::path::Path;

use serde_json::{Value, json};

use super::{blocks, run, size};
use crate::raw;
use crate::support::{anyone, has, skip};

const SHOWS: &str = "display('<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"7\"/>', { a: [1] }, new Map(), { 'text/html': '<b>x</b>' });\n\
    display({ 'image/png': 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==' });\n\
    console.log(process.env.NODE_OPTIONS, process.env.HOTCELL_PRELOAD)";
const KINDS: [&str; 5] = [
    "image/svg+xml",
    "application/json",
    "text/plain",
    "text/html",
    "image/png",
];

fn kinds(facts: &Value) -> Vec<&str> {
    let displays = facts["displays"].as_array().expect("a list").iter();
    displays
        .map(|it| it["type"].as_str().expect("a type"))
        .collect()
}

fn shows(result: &Value, what: &str) {
    let facts = &result["structuredContent"];
    assert_eq!(facts["stdout"], "undefined undefined\n", "{what}: {facts}");
    assert_eq!(kinds(facts), KINDS, "{what}");
    let sizes: Vec<(u32, u32)> = blocks(result).into_iter().map(size).collect();
    assert_eq!(sizes, [(9, 7), (1, 1)], "{what}");
    assert_eq!(facts.get("notes"), None, "{what}");
}

#[test]
fn javascript_displays_with_node_and_without() {
    if anyone().is_none() {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    for language in ["javascript@embedded", "typescript@embedded"] {
        shows(&run(&mut client, language, SHOWS), language);
    }
    if has("node") {
        shows(&run(&mut client, "javascript", SHOWS), "node");
    }
    // A program's own is not replaced, and whoever does not use it has none.
    let own = "var display = (x) => console.log('own', x); display(1)";
    let result = run(&mut client, "javascript@embedded", own);
    assert_eq!(result["structuredContent"]["stdout"], "own 1\n");
    let result = run(
        &mut client,
        "javascript@embedded",
        "console.log(typeof display)",
    );
    assert_eq!(result["structuredContent"]["stdout"], "undefined\n");
}

/// Programs and their last values, the same wherever they run.
fn values(client: &mut raw::Stdio, language: &str) {
    for (code, value) in [
        ("const x = 4; x * 2 // eight", json!(8)),
        ("'text'", json!("text")),
        (
            "function f(n) {\n  return { n };\n}\nf(\n  2,\n);\n",
            json!({ "n": 2 }),
        ),
        (
            "import { sep } from 'node:path';\nconst x = 1;\n[await Promise.resolve(5), sep]",
            json!([5, "/"]),
        ),
        ("import os from 'node:os';\nconst x = 4;\nx", json!(4)),
        (
            "export const a = 1;\nnew Map([[a, 2]])",
            json!("Map(1) { 1 => 2 }"),
        ),
        ("const f = async () => 3;\nf()", Value::Null),
        ("if (true) { 5 }", Value::Null),
        ("console.log(1); 7", json!(7)),
    ] {
        let facts = run(client, language, code)["structuredContent"].clone();
        assert_eq!(facts["status"], "ok", "{language}: {code}: {facts}");
        assert_eq!(facts["value"], value, "{language}: {code}: {facts}");
        assert_eq!(facts.get("files"), None, "{language}: {code}");
    }
    // The place of an error is the program's own, and what makes this happen is nowhere to be seen.
    let failing = "const f = () => { throw new Error('x') };\n\n  f() + 1";
    let failing = run(client, language, failing)["structuredContent"].clone();
    assert_eq!(failing["error"]["line"], 1, "{language}: {failing}");
    let stderr = failing["stderr"].as_str().unwrap_or_default();
    assert!(stderr.contains(":3:3"), "{language}: {stderr}");
    assert!(!stderr.contains("$$v"), "{language}: {stderr}");
    let env = "Object.keys(process.env).filter((it) => it.startsWith('HOTCELL'))";
    let code = format!("import process from 'node:process';\n{env}");
    let facts = run(client, language, &code)["structuredContent"].clone();
    assert_eq!(facts["value"], json!([]), "{language}: {facts}");
}

#[test]
fn values_of_last_expressions_come_from_node_and_from_the_engine_inside() {
    if anyone().is_none() {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    for language in ["javascript@embedded", "typescript@embedded"] {
        values(&mut client, language);
    }
    for language in ["javascript@node", "typescript@node"] {
        if has("node") {
            values(&mut client, language);
        }
    }
    let typed = "type T = { a: number };\nconst t = { a: 1 } as T;\nt satisfies T";
    let facts = run(&mut client, "typescript@embedded", typed)["structuredContent"].clone();
    assert_eq!(facts["value"], json!({ "a": 1 }), "{facts}");
}

#[test]
fn javascript_displays_and_has_values_with_deno() {
    if anyone().is_none() {
        return;
    }
    let data = std::env::var_os("HOTCELL_TEST_DATA").unwrap_or_default();
    let deno = Path::new(&data).join("hotcell/runtimes/first/deno");
    if !deno.exists() && !has("deno") {
        return skip("no fetched deno in $HOTCELL_TEST_DATA, and none in PATH");
    }
    let mut client = raw::Stdio::open_as(&[], |command, _| {
        if deno.exists() {
            command.env("XDG_DATA_HOME", &data);
        }
    });
    for language in ["javascript@deno", "typescript@deno"] {
        let code = SHOWS.replace(
            "console.log",
            "import process from 'node:process';\nconsole.log",
        );
        shows(&run(&mut client, language, &code), language);
        values(&mut client, language);
    }
}

#[test]
fn calls_of_a_session_show_what_they_show_and_nothing_of_others() {
    if anyone().is_none() {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    for language in ["javascript@embedded", "typescript@embedded", "javascript"] {
        if !language.contains('@') && !has("node") {
            continue;
        }
        let session = language.replace('@', "-");
        let mut call = |code: &str| {
            let arguments = json!({ "code": code, "language": language, "session": session });
            client.call("run", arguments)["structuredContent"].clone()
        };
        let facts = call("var x = { a: [1] }");
        assert_eq!(facts.get("displays"), None, "{language}: {facts}");
        assert_eq!(
            kinds(&call("display(x)")),
            ["application/json"],
            "{language}"
        );
        assert_eq!(
            kinds(&call("display('a'); display('<b>b</b>'); 5")),
            ["text/plain", "text/plain"],
            "{language}"
        );
        assert_eq!(call("x.a").get("displays"), None, "{language}");
    }
}
