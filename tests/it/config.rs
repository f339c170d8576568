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
const TOLD: &str = "config.toml:3: key `packages.sizes`: unknown field `sizes`, expected one of ";
const HINT: &str = "Correct the file; docs/packages.md describes it.";

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
