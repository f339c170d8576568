//! The engines in the binary run with nothing installed: `PATH` is an empty folder here.

mod formats;
mod packages;
mod script;
mod walls;

use serde_json::{Value, json};

use crate::proof::cases::{Case, languages};
use crate::support::{Answer, Hotcell, Running, anyone, everyone, has};

/// Every language that must run with nothing installed, and its engine.
const BUILT_IN: [(&str, &str); 10] = [
    ("javascript", "quickjs"),
    ("jq", "jaq"),
    ("lua", "lua"),
    ("sass", "sass"),
    ("scheme", "steel"),
    ("scss", "scss"),
    ("sql", "sqlite"),
    ("svg", "resvg"),
    ("typescript", "quickjs-typescript"),
    ("wat", "wasmi"),
];

/// Reads, prints what it got, and exits with 3: all of WASI that there is.
const ECHO_WAT: &str = include_str!("embedded/echo.wat");

/// `hotcell run` where no runtime is, with this on its standard input.
fn run(hotcell: &Hotcell, input: &str, arguments: &[&str]) -> Answer {
    let empty = hotcell.make_folder("home/empty");
    let mut command = hotcell.command();
    command.env("PATH", empty).arg("run").args(arguments);
    let mut running = Running::start(command.stdin(std::process::Stdio::piped()));
    let mut stdin = running.stdin.take().expect("its input");
    // A program that does not read it may be gone already.
    let _ = std::io::Write::write_all(&mut stdin, input.as_bytes());
    drop(stdin);
    running.finish()
}

fn said(hotcell: &Hotcell, language: &str, code: &str) -> (Option<i32>, String, String) {
    run(hotcell, "", &["-l", language, "-c", code]).whole()
}

fn well(text: &str) -> (Option<i32>, String, String) {
    (Some(0), text.to_owned(), String::new())
}

#[test]
fn every_engine_passes_its_cases_with_an_empty_path() {
    let all = languages();
    for hotcell in everyone() {
        for (id, engine) in BUILT_IN {
            let language = all.iter().find(|language| language.id == id);
            let language = language.expect("it has cases");
            let fits =
                |case: &Case| case.only.is_empty() || case.only.iter().any(|it| it == engine);
            for (name, case) in language.cases().filter(|(_, case)| fits(case)) {
                let mut arguments = vec!["--json", "-l", id, "-c", &case.code, "--"];
                arguments.extend(case.args.iter().map(String::as_str));
                let input = case.stdin.as_deref().unwrap_or_default();
                let record = run(&hotcell, input, &arguments).json();
                assert_eq!(
                    case.judge(name, &record),
                    None,
                    "{} as {}",
                    id,
                    hotcell.name
                );
                let runtime = &record["runtime"];
                let found = (&runtime["name"], &runtime["path"]);
                assert_eq!(found, (&json!(engine), &json!("embedded")));
            }
        }
    }
}

#[test]
fn engines_take_arguments_input_and_exit_codes() {
    let Some(hotcell) = anyone() else { return };
    let args = ["a b", "$HOME", "it's"];
    for (language, code) in [
        ("sql", ".headers off\nselect ?1 || '|' || ?2 || '|' || ?3;"),
        ("jq", "$ARGS.positional | join(\"|\")"),
        (
            "scheme",
            "(for-each (lambda (a) (display a) (display \"|\")) (cdr (command-line)))\n(newline)",
        ),
    ] {
        let flags: &[&str] = if language == "jq" { &["-n", "-r"] } else { &[] };
        let arguments = [&["-l", language, "-c", code, "--"], flags, &args].concat();
        let answer = run(&hotcell, "", &arguments);
        let text = answer.out().replace("|\n", "\n");
        assert_eq!(
            (answer.code, text.as_str()),
            (Some(0), "a b|$HOME|it's\n"),
            "{language}: {}",
            answer.err()
        );
    }
    for (language, code) in [
        ("sql", ".headers off\nselect 'got ' || stdin();\n.exit 3"),
        ("wat", ECHO_WAT),
        (
            "scheme",
            "(display (string-append \"got \" (read-line)))\n(newline)\n(exit 3)",
        ),
        ("lua", "print('got ' .. io.read('a'))\nos.exit(3)"),
        (
            "javascript",
            "console.log('got ' + require('fs').readFileSync(0)); process.exit(3)",
        ),
    ] {
        let answer = run(&hotcell, "abc\n", &["-l", language, "-c", code]);
        let text = answer.out().trim_end().to_owned();
        assert_eq!(
            (answer.code, text.as_str()),
            (Some(3), "got abc"),
            "{language}: {}",
            answer.err()
        );
    }
    let halted = run(
        &hotcell,
        "1 2 3",
        &["-l", "jq", "-c", "., (select(. == 2) | halt(3))"],
    );
    assert_eq!((halted.code, halted.out().as_str()), (Some(3), "1\n2\n"));
}

#[test]
fn a_failure_has_a_kind_and_a_line() {
    let Some(hotcell) = anyone() else { return };
    for (language, code, kind, line) in [
        ("javascript", "\nlet x = ;", "syntax", 2),
        ("javascript", "\n\nnull.x", "exception", 3),
        (
            "javascript",
            "\nsetTimeout(() => {\n  throw new Error('late') }, 1)",
            "exception",
            3,
        ),
        ("typescript", "type A = 1;\nconst x: = 1", "syntax", 2),
        // The types above it are gone when it runs.
        (
            "typescript",
            "interface A {\n  x: number\n}\n\nthrow new Error('x')",
            "exception",
            5,
        ),
        ("lua", "\nlocal = 1", "syntax", 2),
        ("lua", "\n\nerror('boom')", "exception", 3),
        ("sql", "select 1;\n\nselec 2;", "syntax", 3),
        (
            "sql",
            "create table t(a unique);\ninsert into t values(1);\ninsert into t values(1);",
            "exception",
            3,
        ),
        (
            "scss",
            ".a { color: red }\n.b { color: $nope }",
            "syntax",
            2,
        ),
        ("sass", ".a\n  color: $nope", "syntax", 2),
        ("jq", ".a |\n", "syntax", 2),
        ("wat", "(module\n  (func (expor \"x\")))", "syntax", 2),
        (
            "svg",
            "<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'>\n<rect></svg>",
            "syntax",
            2,
        ),
        ("scheme", "(display 1)\n(car 5)", "exception", 2),
    ] {
        let record = run(&hotcell, "null", &["--json", "-l", language, "-c", code]).json();
        let error = &record["error"];
        let found = (error["kind"].as_str(), error["line"].as_u64());
        assert_eq!(
            found,
            (Some(kind), Some(line)),
            "{language}: {code}: {record}"
        );
    }
}

#[test]
fn an_engine_is_chosen_by_name_and_only_where_there_is_one() {
    let Some(hotcell) = anyone() else { return };
    let code = "console.log(process.versions.quickjs !== undefined)";
    if has("node") {
        // Control: the real one is preferred.
        assert_eq!(
            hotcell.run(&["-l", "js", "-c", code]).whole(),
            well("false\n")
        );
        assert_eq!(
            hotcell.run(&["-l", "js@node", "-c", code]).whole(),
            well("false\n")
        );
    }
    for arguments in [
        ["-l", "js@embedded", "-c", code],
        ["--engine=embedded", "-ljs", "-c", code],
    ] {
        assert_eq!(hotcell.run(&arguments).whole(), well("true\n"));
    }
    let refused = hotcell.run(&["-l", "python@embedded", "-c", "print(1)"]);
    let told =
        "hotcell: `python` cannot be run by `embedded`\nhint: Choose one of: python3, python.\n";
    assert_eq!(refused.whole(), (Some(2), String::new(), told.to_owned()));
    let listed = hotcell
        .command()
        .arg("languages")
        .arg("--json")
        .env("PATH", "")
        .output();
    let rows: Vec<Value> = serde_json::from_slice(&listed.expect("a list").stdout).expect("JSON");
    for (id, engine) in BUILT_IN {
        let row = rows
            .iter()
            .find(|row| row["id"] == id)
            .expect("it is listed");
        assert_eq!(
            (&row["runtime"], &row["path"]),
            (&json!(engine), &json!("embedded")),
            "{id}"
        );
        assert!(row["version"].is_string(), "{id}");
        assert_eq!(
            (&row["from"], &row["start"]),
            (&json!("built in"), &json!("cold"))
        );
    }
}
