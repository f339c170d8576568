//! Every language that this machine has does what `tests/languages/cases.json` says, in cells,
//! over MCP: hello, arguments, input, exit code, errors, unicode, sixteen at once.
//!
//! Prints a table of all. With `HOTCELL_NO_SKIP=1` there must be at least thirty languages, with
//! `HOTCELL_ALL_LANGUAGES=1` at least sixty-five; `HOTCELL_TABLE` names a file for the table.

pub mod cases;
mod detection;
mod readme;
mod table;
mod variants;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::raw::{self, Stdio};
use crate::support::isolation;
use cases::{Case, Language, languages};
use table::Line;

/// A compiler on a busy machine, behind fifteen others.
const PATIENCE: Duration = Duration::from_secs(600);
/// What a shell, a careless launcher or an option parser would make something else of.
const HARD: [&str; 9] = [
    "a b",
    "it's",
    "\"q\"",
    ";id",
    "$(id)",
    "`id`",
    "*",
    "two\nlines",
    "é✓",
];

#[test]
fn every_language_of_this_machine_passes_its_cases() {
    let set = |name| std::env::var_os(name).is_some_and(|value| value == "1");
    let least = match (set("HOTCELL_ALL_LANGUAGES"), set("HOTCELL_NO_SKIP")) {
        (true, _) => 65,
        (false, true) => 30,
        (false, false) => 1,
    };
    languages_pass(isolation::chosen(), |_| true, least);
}

/// All of these that are here pass theirs, `least` of them at least.
pub fn languages_pass(walls: Option<&'static str>, is_asked: impl Fn(&str) -> bool, least: usize) {
    let all = languages();
    let cache = tempfile::tempdir().expect("a folder");
    let mut client = open(cache.path(), walls);
    let listed = client.request("resources/read", json!({ "uri": "hotcell://languages" }));
    let text = listed["result"]["contents"][0]["text"].as_str();
    let rows: Vec<Value> = serde_json::from_str(text.expect("a list")).expect("JSON");
    let row = |id: &str| rows.iter().find(|row| row["id"] == id);
    for language in &all {
        assert!(row(&language.id).is_some(), "{} is not listed", language.id);
    }
    assert_eq!(rows.len(), all.len(), "each language has its cases");
    let here: Vec<&Language> = all
        .iter()
        .filter(|language| row(&language.id).is_some_and(|row| row["available"] == true))
        .filter(|language| is_asked(&language.id))
        .collect();

    let (next, lines) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = open(cache.path(), walls);
                while let Some(language) = here.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let line = check(&mut client, language, row(&language.id).expect("a row"));
                    println!("{line}");
                    lines.lock().expect("no other panics").push(line);
                }
            });
        }
    });
    let mut lines = lines.into_inner().expect("no other panics");
    lines.sort_by(|a, b| a.id.cmp(&b.id));
    if let Some(file) = std::env::var_os("HOTCELL_TABLE") {
        std::fs::write(file, table::document(&lines, &rows)).expect("the table is written");
    }
    let wrong: Vec<&String> = lines.iter().flat_map(|line| &line.wrong).collect();
    assert!(wrong.is_empty(), "{} are wrong: {wrong:#?}", wrong.len());
    assert!(
        lines.len() >= least,
        "only {} languages are here",
        lines.len()
    );
}

/// A server with an empty cache of its own and the tool chains of this machine.
fn open(cache: &Path, walls: Option<&'static str>) -> Stdio {
    let mut client = Stdio::start_as(&isolation::arguments(walls), |command, _| {
        let path = std::env::var("HOTCELL_LANGUAGES_PATH").unwrap_or_default();
        let path = format!("{}:{path}", isolation::path());
        command.env("PATH", path.trim_end_matches(':'));
        command.env("XDG_CACHE_HOME", cache);
        if let Some(data) = std::env::var_os("HOTCELL_TEST_DATA") {
            command.env("XDG_DATA_HOME", data);
        }
    });
    client.initialize("2025-11-25");
    client
}

fn run(client: &mut Stdio, arguments: Value) -> Value {
    let id = client.begin_call("run", arguments);
    raw::record(&client.answer_within(&id, PATIENCE)["result"])
}

fn arguments(language: &Language, case: &Case, args: &[&str]) -> Value {
    let mut arguments =
        json!({ "language": language.id, "code": case.code, "args": args, "timeout": 120 });
    if let Some(stdin) = &case.stdin {
        arguments["stdin"] = stdin.as_str().into();
    }
    arguments
}

fn check(client: &mut Stdio, language: &Language, row: &Value) -> Line {
    let mut line = Line::new(language, row);
    let runtime = row["runtime"].as_str().unwrap_or_default();
    let for_this = |case: &&Case| case.only.is_empty() || case.only.iter().any(|it| it == runtime);
    for (name, case) in language.cases().filter(|(_, case)| for_this(case)) {
        let args: Vec<&str> = case.args.iter().map(String::as_str).collect();
        let begun = Instant::now();
        let record = run(client, arguments(language, case, &args));
        if name == "hello" {
            line.cold = begun.elapsed();
            let again = Instant::now();
            run(client, arguments(language, case, &args));
            line.warm = again.elapsed();
        }
        line.note(name, case.judge(name, &record));
        if name == "args" && !case.simple {
            let hard = run(client, arguments(language, case, &HARD));
            let right = hard["stdout"] == format!("{}\n", HARD.join("|"));
            line.note("hard args", (!right).then(|| format!("{}", hard["stdout"])));
        }
    }
    line.note("parallel", parallel(client, language));
    line
}

/// Sixteen at once, each with an answer of its own where it takes arguments.
fn parallel(client: &mut Stdio, language: &Language) -> Option<String> {
    let (case, numbered) = match &language.args {
        Some(case) if case.only.is_empty() => (case, true),
        _ => (&language.hello, false),
    };
    let numbers: Vec<String> = (0..16).map(|number| format!("run {number}")).collect();
    let begun: Vec<(Value, &String)> = numbers
        .iter()
        .map(|number| {
            let args = if numbered {
                vec![number.as_str()]
            } else {
                Vec::new()
            };
            let id = client.begin_call("run", arguments(language, case, &args));
            (id, number)
        })
        .collect();
    let mut wrong = None;
    for (id, number) in begun {
        let answer = client.answer_within(&id, PATIENCE);
        let record = &raw::record(&answer["result"]);
        let right = if numbered {
            record["stdout"] == format!("{number}\n")
        } else {
            case.judge("hello", record).is_none()
        };
        if !right {
            wrong = Some(format!("{number}: {record}"));
        }
    }
    wrong
}
