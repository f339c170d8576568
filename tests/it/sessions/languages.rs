//! What is kept in each language that has sessions.

use serde_json::{Value, json};

use super::{call_with, serve};
use crate::mcp::client::Client;
use crate::support::{anyone, has, has_heavy};

/// Calls one after the other: code, what it prints, its value.
fn expect(client: &mut Client, language: &str, calls: &[(&str, &str, Value)]) {
    let session = language.replace('@', "-");
    for (code, stdout, value) in calls {
        let facts = call_with(
            client,
            json!({ "code": code, "language": language, "session": session }),
        );
        assert_eq!(facts["stdout"], *stdout, "{code}: {facts}");
        assert_eq!(facts["value"], *value, "{code}: {facts}");
        assert_eq!(facts["status"], "ok", "{code}: {facts}");
    }
}

/// Interrupts `endless`, and finds that `kept` still has its value.
fn expect_interrupted(client: &mut Client, language: &str, endless: &str) {
    let call = json!({ "code": endless, "language": language, "session": language.replace('@', "-"), "timeout": 1 });
    let facts = call_with(client, call);
    assert_eq!(facts["status"], "timeout", "{facts}");
    let note = facts["notes"].to_string();
    assert!(note.contains("interrupted"), "{facts}");
}

fn expect_failure(client: &mut Client, language: &str, code: &str, error: (&str, i32, &str)) {
    let call = json!({ "code": code, "language": language, "session": language.replace('@', "-") });
    let facts = call_with(client, call);
    let (kind, code, said) = error;
    assert_eq!(
        (&facts["error"]["kind"], &facts["exit_code"]),
        (&json!(kind), &json!(code)),
        "{facts}"
    );
    assert!(facts["stderr"].as_str().unwrap().contains(said), "{facts}");
}

#[test]
fn javascript_keeps_names_and_awaits() {
    let Some(hotcell) = anyone().filter(|_| has("node")) else {
        return;
    };
    let mut client = serve(&hotcell, &[]);
    expect(
        &mut client,
        "javascript",
        &[
            (
                "const a = 1; let b = 2; function f() { return a + b } class C { x = 1 }",
                "",
                Value::Null,
            ),
            ("console.log(f()); new C()", "3\n", "C { x: 1 }".into()),
            ("const a = 40; f()", "", "42".into()),
            (
                "const r = await new Promise(r => setTimeout(r, 10, 'slept')); r",
                "",
                "slept".into(),
            ),
            (
                "async function main() { await null; console.log('main'); return 5 }\nmain()",
                "main\n",
                "5".into(),
            ),
            (
                "import { join } from 'path';\nimport * as os from 'node:os';\njoin('a', typeof os.cpus)",
                "",
                "a/function".into(),
            ),
            (
                "require('fs').writeFileSync('m.mjs', 'export default 7')",
                "",
                Value::Null,
            ),
            ("(await import('./m.mjs')).default", "", "7".into()),
            (
                "({ a: [1, 'é'], b: null })",
                "",
                "{\"a\":[1, \"é\"], \"b\":null}".into(),
            ),
            ("process.exit(0)", "", Value::Null),
        ],
    );
    expect_failure(
        &mut client,
        "javascript",
        "null.x",
        ("exception", 1, "TypeError"),
    );
    expect_failure(
        &mut client,
        "javascript",
        "1 +",
        ("syntax", 1, "SyntaxError"),
    );
    expect_failure(
        &mut client,
        "javascript",
        "process.exit(3)",
        ("exception", 3, ""),
    );
    expect_interrupted(&mut client, "javascript", "b = 9; while (true);");
    expect(
        &mut client,
        "javascript",
        &[("[a, b]", "", "[40, 9]".into())],
    );
}

#[test]
fn bash_keeps_variables_functions_and_its_folder_even_when_it_exits() {
    let Some(hotcell) = anyone().filter(|_| has("bash")) else {
        return;
    };
    let mut client = serve(&hotcell, &[]);
    expect(
        &mut client,
        "bash",
        &[
            (
                "x=1; export Y=2; f() { echo \"f $x\"; }; arr=(a 'b c'); mkdir d; cd d",
                "",
                Value::Null,
            ),
            (
                "f; echo \"${arr[1]}\"; pwd; sh -c 'echo $Y'",
                "f 1\nb c\n/workspace/d\n2\n",
                Value::Null,
            ),
            ("trap 'echo bye' EXIT; echo hi", "hi\nbye\n", Value::Null),
            ("read -r line || echo nothing", "nothing\n", Value::Null),
        ],
    );
    expect_failure(
        &mut client,
        "bash",
        "set -euo pipefail\nx=5\nfalse\necho not",
        ("exception", 1, ""),
    );
    expect_failure(
        &mut client,
        "bash",
        "g() { exit 3; }; g",
        ("exception", 3, ""),
    );
    expect_failure(
        &mut client,
        "bash",
        "if then",
        ("syntax", 2, "syntax error"),
    );
    expect_interrupted(&mut client, "bash", "while :; do :; done");
    expect_interrupted(&mut client, "bash", "sleep 50");
    expect(
        &mut client,
        "bash",
        &[("f; pwd; echo $Y", "f 5\n/workspace/d\n2\n", Value::Null)],
    );
}

#[test]
fn ruby_keeps_variables_methods_and_classes() {
    let Some(hotcell) = anyone().filter(|_| has("ruby")) else {
        return;
    };
    let mut client = serve(&hotcell, &[]);
    expect(
        &mut client,
        "ruby",
        &[
            ("x = 1\ndef f = 41\nclass A; end\nnil", "", Value::Null),
            ("puts f\nx + f", "41\n", "42".into()),
            (
                "require 'json'\nJSON.dump({ a: x })",
                "",
                "{\"a\":1}".into(),
            ),
            (
                "{ a: [x, nil], 'b' => 'é' }",
                "",
                "{\"a\":[1, null], \"b\":\"é\"}".into(),
            ),
            ("[1..2, :s]", "", "[1..2, :s]".into()),
            ("exit", "", Value::Null),
        ],
    );
    expect_failure(
        &mut client,
        "ruby",
        "raise 'boom'",
        ("exception", 1, "call-7.rb:1:in"),
    );
    expect_failure(&mut client, "ruby", "1 +", ("syntax", 1, "syntax error"));
    expect_failure(&mut client, "ruby", "exit 3", ("exception", 3, ""));
    expect_interrupted(&mut client, "ruby", "x = 2\nloop {}");
    expect(&mut client, "ruby", &[("x", "", "2".into())]);
}

#[test]
fn sql_keeps_its_database() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    expect(
        &mut client,
        "sql",
        &[
            (
                "create table t(a, b); insert into t values (1, 'x'), (2, 'y');",
                "",
                Value::Null,
            ),
            ("select count(*) as n from t;", "n\n2\n", Value::Null),
        ],
    );
    let given = json!({ "code": "select stdin() as s;", "session": "sql", "stdin": "given" });
    assert_eq!(call_with(&mut client, given)["stdout"], "s\ngiven\n");
    expect_failure(
        &mut client,
        "sql",
        "selec 1;",
        ("syntax", 1, "/tmp/call-4.sql:1: near"),
    );
    expect_failure(
        &mut client,
        "sql",
        "select * from no_such_table;",
        ("exception", 1, "no such table"),
    );
    expect(
        &mut client,
        "sql",
        &[("select b from t where a = 2;", "b\ny\n", Value::Null)],
    );
}

#[test]
fn the_engine_inside_keeps_names_of_javascript_and_typescript() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    let calls = [
        (
            "const a = 1; let b = 2;\nfunction f() { return a + b }\nclass C { x = 1 }",
            "",
            Value::Null,
        ),
        ("console.log(f()); new C()", "3\n", "C { x: 1 }".into()),
        ("const a = 40;\nf()", "", "42".into()),
        (
            "const r = await new Promise((r) => setTimeout(r, 10, 'slept'));\nr",
            "",
            "slept".into(),
        ),
        (
            "async function main() { await null; console.log('main'); return 5 }\nmain()",
            "main\n",
            "5".into(),
        ),
        (
            "import { join } from 'path';\njoin('a', 'b')",
            "",
            "a/b".into(),
        ),
    ];
    expect(&mut client, "javascript@embedded", &calls);
    let failing = "javascript@embedded";
    expect_failure(
        &mut client,
        failing,
        "null.x",
        ("exception", 1, "TypeError"),
    );
    expect_failure(&mut client, failing, "1 +", ("syntax", 1, "SyntaxError"));
    expect(&mut client, failing, &[("a + b", "", "42".into())]);
    expect(
        &mut client,
        "typescript",
        &[
            (
                "interface P { n: number }\nenum E { A = 3 }\nconst p: P = { n: 1 };\nfunction g(x: P): number { return x.n + E.A }",
                "",
                Value::Null,
            ),
            ("const q: number = g(p);\nq", "", "4".into()),
            ("p", "", "{\"n\":1}".into()),
            ("[p, new Map()]", "", "[ { n: 1 }, Map(0) {} ]".into()),
        ],
    );
}

#[test]
fn r_keeps_variables_functions_and_libraries() {
    let Some(hotcell) = anyone().filter(|_| has_heavy("Rscript")) else {
        return;
    };
    let mut client = serve(&hotcell, &[]);
    expect(
        &mut client,
        "r",
        &[
            (
                "x <- 1; f <- function(y) x + y; library(stats)",
                "",
                Value::Null,
            ),
            ("x\nf(41)", "[1] 1\n", "42".into()),
            (
                "list(a = 1:3, b = 'é', c = NULL)",
                "",
                "{\"a\":[1, 2, 3], \"b\":\"é\", \"c\":null}".into(),
            ),
            ("data.frame(n = 1:2)", "", "  n\n1 1\n2 2".into()),
            ("invisible(5)", "", Value::Null),
            (
                "hotcell$vars$m <- list(1, 'two'); hotcell$vars$n <- c(a = 1.5)\nnames(hotcell$vars)",
                "",
                "[\"m\", \"n\"]".into(),
            ),
            ("hotcell$vars$m[[2]]", "", "two".into()),
            ("quit(status = 0)", "", Value::Null),
        ],
    );
    let given = json!({ "code": "readLines(file('stdin'))", "session": "r", "stdin": "given\n" });
    assert_eq!(call_with(&mut client, given)["value"], "given");
    expect_failure(&mut client, "r", "stop('boom')", ("exception", 1, "boom"));
    expect_failure(
        &mut client,
        "r",
        "f <- function() g()\nf()",
        ("exception", 1, "could not find function"),
    );
    expect_failure(
        &mut client,
        "r",
        "1 +",
        ("syntax", 1, "unexpected end of input"),
    );
    expect_failure(&mut client, "r", "quit(status = 3)", ("exception", 3, ""));
    expect_interrupted(&mut client, "r", "x <- 2; repeat {}");
    expect_interrupted(&mut client, "r", "Sys.sleep(50)");
    expect(&mut client, "r", &[("x", "", "2".into())]);
}

#[test]
fn a_call_of_an_engine_inside_is_interrupted_and_keeps_its_session() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    expect(
        &mut client,
        "sql",
        &[(
            "create table t(a); insert into t values (1);",
            "",
            Value::Null,
        )],
    );
    let endless =
        "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r;";
    expect_interrupted(&mut client, "sql", endless);
    expect(
        &mut client,
        "sql",
        &[("select a from t;", "a\n1\n", Value::Null)],
    );
    for language in ["javascript@embedded", "typescript"] {
        expect(&mut client, language, &[("var a = 1", "", Value::Null)]);
        for endless in [
            "a += 1; while (true);",
            "a += 1; await new Promise((r) => setTimeout(r, 50000))",
            "a += 1; setInterval(() => {}, 10)",
            "a += 1; (async () => { for (;;) { await null; for (let i = 0; i < 1e9; i++); } })()",
            "a += 1; (async () => { for (;;) await null })()",
            "a += 1; var l = () => Promise.resolve().then(l); l()",
        ] {
            expect_interrupted(&mut client, language, endless);
        }
        expect(&mut client, language, &[("a", "", "7".into())]);
    }
}
