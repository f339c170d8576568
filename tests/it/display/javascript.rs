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

#[test]
fn javascript_displays_with_deno() {
    let data = std::env::var_os("HOTCELL_TEST_DATA").unwrap_or_default();
    let deno = Path::new(&data).join("hotcell/runtimes/first/deno");
    if anyone().is_none() || !deno.exists() {
        return skip("no fetched deno in $HOTCELL_TEST_DATA");
    }
    let mut client = raw::Stdio::open_as(&[], |command, _| {
        command.env("XDG_DATA_HOME", &data);
    });
    for language in ["javascript@deno", "typescript@deno"] {
        let code = SHOWS.replace(
            "console.log",
            "import process from 'node:process';\nconsole.log",
        );
        shows(&run(&mut client, language, &code), language);
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
