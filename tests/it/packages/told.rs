//! What is told of an install while it goes on and afterwards, and which sets there are.

use std::process::Command;

use serde_json::Value;

use super::registry::{Registry, wheel};
use super::{OLD, PROGRAM, command, installer, run, tiny};
use crate::support::{Running, anyone, has, open_to_all};

#[test]
fn over_mcp_an_install_reports_what_it_does_and_takes_lists_maps_and_locks() {
    let Some(hotcell) = anyone().filter(|_| has("python3") && installer().is_some()) else {
        return;
    };
    let registry = Registry::start();
    registry.add("tinything", "1.0", OLD, &tiny("1.0"));
    registry.add("tinything", "2.0", OLD, &tiny("2.0"));
    let own = command(&hotcell, &registry, installer());
    let mut client = crate::raw::Stdio::open_as(&[], |command, _| {
        let variables = own
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?)));
        command.envs(variables);
    });
    let arguments =
        serde_json::json!({ "code": PROGRAM, "language": "python", "packages": ["tinything<2"] });
    let params = serde_json::json!({ "name": "run", "arguments": arguments, "_meta": { "progressToken": "t" } });
    let first = client.request("tools/call", params)["result"].clone();
    assert_eq!(first["structuredContent"]["stdout"], "1.0\n", "{first}");
    let reported = client.lines.iter().any(|line| {
        let line = String::from_utf8_lossy(line);
        line.contains("notifications/progress") && line.contains("fetching tinything-1.0")
    });
    assert!(reported, "no progress");
    let mut run = |packages: Value| {
        let arguments =
            serde_json::json!({ "code": PROGRAM, "language": "python", "packages": packages });
        client.call("run", arguments)["structuredContent"]["stdout"].clone()
    };
    assert_eq!(
        run(serde_json::json!({ "tinything": "tinything>1" })),
        "2.0\n"
    );
    assert_eq!(
        run(first["structuredContent"]["packages"]["lock"].clone()),
        "1.0\n"
    );
    assert_eq!(run(serde_json::json!([])), "");
}

#[test]
fn the_installed_sets_are_listed_removed_and_pruned() {
    let Some(hotcell) = anyone().filter(|_| has("python3") && installer().is_some()) else {
        return;
    };
    let registry = Registry::start();
    registry.add("tinything", "1.0", OLD, &tiny("1.0"));
    let packages = |arguments: &[&str]| {
        let mut command = command(&hotcell, &registry, installer());
        Running::start(command.arg("packages").args(arguments)).finish()
    };
    assert_eq!(packages(&["add", "tinything"]).out(), "tinything==1.0\n");
    let listed = packages(&["list", "--json"]).json();
    assert_eq!(
        (&listed[0]["language"], &listed[0]["installed"][0]),
        (&"python".into(), &"tinything==1.0".into())
    );
    assert!(packages(&["list"]).out().contains("tinything==1.0"));
    // What was installed beforehand is what a program gets, offline too.
    assert_eq!(
        run(&hotcell, &registry, &["--offline", "-c", PROGRAM]).out(),
        "1.0\n"
    );
    assert_eq!(packages(&["prune"]).out(), "nothing to remove\n");
    // What a program may be using stays, and that is said.
    assert_eq!(
        packages(&["prune", "--size", "1"]).out(),
        "nothing to remove\n0.0 MB stay: used in the last quarter of an hour\n"
    );
    assert_eq!(packages(&["prune", "--size", "much"]).code, Some(2));
    assert_eq!(
        packages(&["prune", "--all"]).out(),
        "removed tinything==1.0 (0.0 MB)\n"
    );
    assert_eq!(packages(&["list", "--json"]).json(), serde_json::json!([]));
    assert_eq!(
        run(&hotcell, &registry, &["--offline", "-c", PROGRAM]).code,
        Some(1)
    );
    let bad = packages(&[
        "add",
        "-l",
        "python",
        "--",
        "--index-url=http://127.0.0.1:9",
    ]);
    assert_eq!(bad.code, Some(2), "{}", bad.err());
}

#[test]
fn an_install_shows_a_bar_on_a_terminal_and_nowhere_else() {
    let Some(hotcell) =
        anyone().filter(|_| has("python3") && has("script") && installer().is_some())
    else {
        return;
    };
    let registry = Registry::start();
    registry.add("tinything", "1.0", OLD, &tiny("1.0"));
    let mut command = command(&hotcell, &registry, installer());
    let program = hotcell.write("tiny.py", PROGRAM);
    open_to_all(&program);
    // `script` gives it a terminal.
    let line = format!("{} run {}", hotcell.binary().display(), program.display());
    let mut terminal = Command::new("script");
    hotcell.dress(&mut terminal);
    terminal.args(["-qec", &line, "/dev/null"]);
    for (name, value) in command.get_envs() {
        terminal.env(name, value.unwrap_or_default());
    }
    let said = Running::start(&mut terminal).finish().out();
    assert!(
        said.contains("[==============================] 100 %"),
        "{said:?}"
    );
    assert!(said.contains("\x1b[K1.0\r\n"), "{said:?}");

    std::fs::remove_dir_all(hotcell.home().join(".cache")).expect("what was installed");
    let said = Running::start(command.arg("run").arg(&program)).finish();
    assert_eq!(said.out(), "1.0\n");
    assert!(!said.err().contains(['[', '\r']), "{:?}", said.err());
}

#[test]
fn each_file_that_is_fetched_is_told_of_once() {
    let Some(hotcell) = crate::support::anyone().filter(|_| installer().is_some()) else {
        return;
    };
    let registry = Registry::start();
    let file = wheel("tinything", "1.0", &[("tinything.py", "x = 1\n")], &[]);
    registry.add("tinything", "1.0", "2020-01-01T00:00:00Z", &file);
    let answer = run(
        &hotcell,
        &registry,
        &["-c", "import tinything; print(tinything.x)"],
    );
    assert_eq!(answer.out(), "1\n", "{}", answer.err());
    assert_eq!(
        answer.err().matches("fetching tinything-1.0").count(),
        1,
        "{}",
        answer.err()
    );
}
