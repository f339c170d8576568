//! The engines in the binary run with nothing installed: `PATH` is an empty folder here.

mod script;

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
                assert_eq!(
                    record["runtime"],
                    json!({ "name": engine, "path": "embedded" })
                );
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
fn an_endless_program_is_ended_and_what_it_printed_is_kept() {
    let Some(hotcell) = anyone() else { return };
    for (language, code) in [
        ("javascript", "console.log('before'); for (;;);"),
        // No call is made in there, so nothing inside could stop it.
        ("javascript", "console.log('before'); new Array(3e8) + ''"),
        ("lua", "print('before') while true do end"),
        (
            "sql",
            ".headers off\nselect 'before'; with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n;",
        ),
        ("jq", "\"before\", last(repeat(1))"),
        ("wat", "(module (func (export \"f\") (loop br 0)))"),
    ] {
        let arguments = ["--json", "--timeout", "1", "-l", language, "-c", code];
        let record = run(&hotcell, "null", &arguments).json();
        assert_eq!(record["status"], "timeout", "{language}: {record}");
        let kept = record["stdout"].as_str().unwrap_or_default();
        assert!(
            language == "wat" || language == "jq" || kept.contains("before"),
            "{language}: {record}"
        );
    }
}

#[test]
fn a_program_that_takes_all_memory_is_out_of_it() {
    let Some(hotcell) = anyone() else { return };
    for (language, code) in [
        (
            "javascript",
            "const all = []; for (;;) all.push(new Array(1000).fill(1))",
        ),
        (
            "lua",
            "local all = {} while true do all[#all + 1] = string.rep('x', 100000) .. #all end",
        ),
        (
            "sql",
            "create table t(a); with recursive n(i) as (select 1 union all select i + 1 from n) insert into t select zeroblob(100000) from n;",
        ),
    ] {
        let arguments = ["--json", "--memory", "96m", "-l", language, "-c", code];
        let record = run(&hotcell, "", &arguments).json();
        assert_eq!(record["status"], "memory", "{language}: {record}");
    }
}

#[test]
fn rows_are_printed_as_a_list_a_table_or_json() {
    let Some(hotcell) = anyone() else { return };
    let code = "select 1 as n, 'two, three' as words, null as none_ union all select 2.0, 'é', 4;";
    let sql = |before: &str, args: &[&str]| {
        let code = format!("{before}{code}");
        run(
            &hotcell,
            "",
            &[&["-l", "sql", "-c", &code, "--"], args].concat(),
        )
        .whole()
    };
    assert_eq!(
        sql("", &[]),
        well("n|words|none_\n1|two, three|\n2.0|é|4\n")
    );
    let json = "[{\"n\":1,\"words\":\"two, three\",\"none_\":null},\n{\"n\":2.0,\"words\":\"é\",\"none_\":4}]\n";
    assert_eq!(sql("", &["--json"]), well(json));
    assert_eq!(sql(".mode json\n", &[]), well(json));
    assert_eq!(
        sql(".mode csv\n", &[]),
        well("n,words,none_\n1,\"two, three\",\n2.0,é,4\n")
    );
    let table = "+-----+------------+-------+\n| n   | words      | none_ |\n+-----+------------+-------+\n\
                 | 1   | two, three |       |\n| 2.0 | é          | 4     |\n+-----+------------+-------+\n";
    assert_eq!(sql(".mode table\n", &[]), well(table));
}

#[test]
fn a_drawing_becomes_a_png() {
    let Some(hotcell) = anyone() else { return };
    let code = "<svg xmlns='http://www.w3.org/2000/svg' width='12' height='7'><rect width='12' height='7' fill='red'/></svg>";
    let answer = run(&hotcell, "", &["-l", "svg", "-c", code, "--", "-"]);
    assert_eq!(answer.code, Some(0), "{}", answer.err());
    let (signature, rest) = answer.stdout.split_at(8);
    assert_eq!(signature, b"\x89PNG\r\n\x1a\n");
    // The first chunk holds width and height.
    assert_eq!(&rest[4..16], b"IHDR\0\0\0\x0c\0\0\0\x07");
    assert_eq!(
        said(&hotcell, "svg", code),
        well(""),
        "else it is a file beside it"
    );
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
    }
}

#[test]
fn nothing_that_an_engine_starts_can_reach_our_binary() {
    for hotcell in everyone() {
        // Control: what it starts can read its own program, by the same kind of path.
        let code = "os.execute('/bin/head -c 4 /proc/self/exe | /usr/bin/od -An -c')\n\
                    print(os.execute('/bin/head -c 4 /proc/' .. io.open('/proc/self/stat'):read('n') .. '/exe'))\n\
                    print(io.open('/proc/self/exe', 'r+'))";
        let answer = run(&hotcell, "", &["-l", "lua", "-c", code]);
        let lines: Vec<String> = answer.out().lines().map(str::to_owned).collect();
        assert!(
            lines[0].contains("E   L   F"),
            "{} {}",
            answer.out(),
            answer.err()
        );
        assert_eq!(
            lines[1],
            "nil\texit\t1",
            "{} {}",
            answer.out(),
            answer.err()
        );
        assert!(
            lines[2].starts_with("nil\t/proc/self/exe: "),
            "{}",
            answer.out()
        );
        assert!(answer.err().contains("/exe"), "{}", answer.err());
        // A cell whose program is another has no descriptor of it.
        let open = hotcell.run(&["-l", "sh", "-c", "ls /proc/self/fd | tr '\\n' ' '"]);
        assert_eq!(open.out(), "0 1 2 3 ", "{}", open.err());
    }
}
