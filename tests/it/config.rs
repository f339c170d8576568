//! A mistake in `config.toml` is told with its file, line and key by everything that reads it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::raw::Stdio;
use crate::raw::http::Http;
use crate::support::{Answer, Hotcell, Running, anyone};

/// The third line is wrong.
const WRONG: &str = "auto_install = false\n[packages]\nsizes = '1g'\n";
const TOLD: &str =
    "config.toml:3: key `packages.sizes`: there is no such key; did you mean `packages.size`?";
const HINT: &str = "Correct the file (`hotcell config edit`); `hotcell help config` describes it.";

fn misconfigured() -> Option<Hotcell> {
    let hotcell = anyone()?;
    hotcell.write("home/.config/hotcell/config.toml", WRONG);
    Some(hotcell)
}

fn command(hotcell: &Hotcell, arguments: &[&str]) -> Answer {
    Running::start(hotcell.command().args(arguments)).finish()
}

/// Gives a server that file.
fn misconfigure(_: &mut Command, home: &Path) {
    let folder = home.join(".config/hotcell");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("config.toml"), WRONG).expect("a file");
}

fn is_told(text: &str) -> bool {
    text.contains(TOLD)
}

#[test]
fn a_command_that_acts_refuses_to_and_says_where_the_mistake_is() {
    let Some(hotcell) = misconfigured() else {
        return;
    };
    for arguments in [
        &["run", "-l", "sh", "-c", "echo ran"][..],
        &["run", "--plan", "-l", "sh", "-c", "echo ran"],
        &["languages", "add", "python"],
        &["languages", "remove", "python"],
        &["packages", "list"],
        &["packages", "add", "numpy"],
        &["packages", "remove", "numpy"],
        &["packages", "prune"],
        &["servers"],
    ] {
        let answer = command(&hotcell, arguments);
        assert_eq!(
            (answer.code, answer.out()),
            (Some(2), String::new()),
            "{arguments:?}: {}",
            answer.err()
        );
        let err = answer.err();
        let start = format!("hotcell: {}", hotcell.home().display());
        assert!(
            err.starts_with(&start) && is_told(&err),
            "{arguments:?}: {err}"
        );
        assert!(err.ends_with(&format!("\nhint: {HINT}\n")), "{err}");
    }
    let result = hotcell.json(&["-l", "sh", "-c", "echo ran"]);
    is_refused(&result);
}

fn is_refused(result: &Value) {
    assert_eq!(
        (&result["status"], &result["error"]["kind"]),
        (&json!("rejected"), &json!("config")),
        "{result}"
    );
    let message = result["error"]["message"].as_str().expect("a message");
    assert!(is_told(message), "{message}");
    assert_eq!(result["error"]["hint"], HINT);
}

#[test]
fn a_command_that_only_looks_says_where_the_mistake_is_and_goes_on() {
    let Some(hotcell) = misconfigured() else {
        return;
    };
    let listed = command(&hotcell, &["languages"]);
    assert!(is_told(&listed.err()), "{}", listed.err());
    assert!(listed.out().contains("python"), "{}", listed.out());
    let examined = command(&hotcell, &["doctor"]);
    assert!(is_told(&examined.err()), "{}", examined.err());
    assert!(examined.out().contains("isolation: "), "{}", examined.out());
    assert_eq!(examined.code, Some(1), "{}", examined.out());
    let examined = command(&hotcell, &["doctor", "--json"]);
    let report: Value = serde_json::from_str(&examined.out()).expect("JSON");
    assert!(is_told(report["config"].as_str().unwrap_or_default()));
}

#[test]
fn a_server_says_it_at_its_start_and_to_every_run() {
    let arguments = || json!({ "code": "print('ran')", "language": "python" });
    let mut stdio = Stdio::open_as(&[], misconfigure);
    for _ in 0..2 {
        is_refused(&stdio.run(arguments()));
    }
    stdio.ping();
    assert!(is_told(&stdio.server.log()), "{}", stdio.server.log());

    let http = Http::start_as(&["--http", "127.0.0.1:0"], misconfigure);
    assert!(is_told(&http.server.log()), "{}", http.server.log());
    for _ in 0..2 {
        is_refused(&http.call("run", arguments())["structuredContent"]);
    }
    http.serves();
}

#[test]
fn every_setting_is_printed_with_its_value_and_where_that_comes_from() {
    let Some(hotcell) = anyone() else { return };
    hotcell.write(
        "home/.config/hotcell/config.toml",
        "save_tools = false\n[packages]\nsize = '2g'\npypi = 'https://me:secret-pw@mirror.test/simple'\n\
         [servers.own]\ncommand = 'own'\nenv = { KEY = 'secret-value' }\n",
    );
    let mut asked = hotcell.command();
    asked.args(["config"]);
    asked.env("HOTCELL_NPM_REGISTRY", "https://npm.test");
    asked.env("HOTCELL_OFFLINE", "1");
    let answer = Running::start(&mut asked).finish();
    assert_eq!(answer.code, Some(0), "{}", answer.err());
    let out = answer.out();
    let rows: Vec<Vec<&str>> = out
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    for row in [
        ["auto_install", "false", "default"],
        ["save_tools", "false", "config.toml:1"],
        ["packages.size", "'2g'", "config.toml:3"],
        [
            "packages.pypi",
            "'https://…@mirror.test/simple'",
            "config.toml:4",
        ],
        [
            "packages.npm",
            "\"https://npm.test\"",
            "$HOTCELL_NPM_REGISTRY",
        ],
        ["packages.offline", "true", "$HOTCELL_OFFLINE"],
        ["limits.max.memory", "\"16g\"", "default"],
        ["servers.own.command", "'own'", "config.toml:6"],
        ["servers.own.env.KEY", "\"…\"", "config.toml:7"],
    ] {
        assert!(rows.contains(&row.to_vec()), "{row:?}: {out}");
    }
    assert!(!out.contains("secret"), "{out}");
    let listed = command(&hotcell, &["config", "--json"]).json();
    let settings = listed["settings"].as_array().expect("a list");
    assert!(
        settings
            .iter()
            .any(|it| it["key"] == "records.days" && it["origin"] == "default")
    );
}

#[test]
fn the_file_is_made_checked_and_described_by_the_program_itself() {
    let Some(hotcell) = anyone() else { return };
    let file = hotcell.place("home/.config/hotcell/config.toml");
    let checked = command(&hotcell, &["config", "check"]);
    assert!(checked.out().contains("is not there"), "{}", checked.out());
    let mut editing = hotcell.command();
    // What an editor would do: change a line and save.
    editing
        .args(["config", "edit"])
        .env("EDITOR", "sed -i s/^#auto_install/auto_install/");
    let edited = Running::start(&mut editing).finish();
    assert_eq!(edited.code, Some(0), "{}", edited.err());
    let text = fs::read_to_string(&file).expect("it was made");
    assert!(text.contains("\nauto_install = false"), "{text}");
    assert!(text.contains("\n#[packages]\n"), "{text}");
    // A mistake is told when the editor has ended, and by the check.
    let mut editing = hotcell.command();
    editing
        .args(["config", "edit"])
        .env("VISUAL", "sh -c 'echo autoinstall=true > $0'");
    let edited = Running::start(&mut editing).finish();
    let told =
        "config.toml:1: key `autoinstall`: there is no such key; did you mean `auto_install`?";
    assert_eq!(edited.code, Some(2), "{}", edited.err());
    assert!(edited.err().contains(told), "{}", edited.err());
    let checked = command(&hotcell, &["config", "check"]);
    assert_eq!(checked.code, Some(2));
    assert!(checked.err().contains(told), "{}", checked.err());
    // A server's mistake is its own, and the check knows it too.
    fs::write(&file, "[servers.a]\ncomand = 'x'\n").expect("a file");
    let checked = command(&hotcell, &["config", "check"]);
    assert_eq!(checked.code, Some(2));
    let told = "did you mean `servers.a.command`?";
    assert!(checked.err().contains(told), "{}", checked.err());
    let schema = command(&hotcell, &["config", "schema"]).json();
    assert_eq!(
        schema["properties"]["packages"]["properties"]["age"]["default"],
        90
    );
}

#[test]
fn help_has_a_page_for_every_topic_that_a_message_names() {
    let Some(hotcell) = anyone() else { return };
    let listed = command(&hotcell, &["help"]);
    assert!(listed.out().contains("Topics"), "{}", listed.out());
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let mut named = Vec::new();
    for file in walk(Path::new(folder)) {
        // What is no text is said to nobody.
        let Ok(text) = fs::read_to_string(file) else {
            continue;
        };
        for rest in text.split("`hotcell help ").skip(1) {
            named.push(rest.split('`').next().unwrap_or_default().to_owned());
        }
        // Comments may name files; what a user reads may not.
        let is_said =
            |line: &&str| line.contains("docs/") && line.contains('"') && line.contains(".md");
        let said: Vec<&str> = text.lines().filter(is_said).collect();
        assert!(
            said.iter()
                .all(|line| line.contains("include_str!") || line.contains("> docs/config.md")),
            "{said:?}"
        );
    }
    named.retain(|topic| topic.bytes().all(|byte| byte.is_ascii_lowercase()));
    assert!(named.len() > 5, "{named:?}");
    for topic in named {
        let page = command(&hotcell, &["help", &topic]);
        assert!(page.out().contains("# "), "{topic}: {}", page.err());
    }
    assert!(
        command(&hotcell, &["help", "run"])
            .out()
            .contains("--timeout")
    );
    assert!(
        command(&hotcell, &["help", "packages", "add"])
            .out()
            .contains("Install packages now")
    );
    let wrong = command(&hotcell, &["help", "limts"]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.err().contains("Did you mean `hotcell help limits`?"),
        "{}",
        wrong.err()
    );
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path() {
            path if path.is_dir() => files.extend(walk(&path)),
            path => files.push(path),
        }
    }
    files
}
