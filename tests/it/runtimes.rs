//! Interpreters that live outside /usr, as version managers lay them out: the real one is
//! found, it runs, its prefix cannot be written to, and nothing else of the home is there.
//!
//! The layouts are made in a home of our own from copies of this host's interpreters, so
//! no test needs a version manager or a network.

mod layout;

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Hotcell, Running, anyone, everyone, has, skip};
use layout::{CANARY, Interpreter, NODES, PYTHONS};

#[test]
fn a_python_of_any_version_manager_runs_and_shows_nothing_else_of_the_home() {
    if !has("python3") {
        return;
    }
    for hotcell in everyone() {
        let mut python = Interpreter::python(&hotcell);
        for layout in &PYTHONS {
            let context = format!("{} as {}", layout.name, hotcell.name);
            let path = python.arrange(&hotcell, layout);
            let home = hotcell.home().display().to_string();

            // Control: outside, the same probe run by the same interpreter sees it all.
            let mut outside = Command::new(python.real());
            hotcell.dress(outside.args(["-c", layout::PYTHON_PROBE, &home, &home]));
            let seen = Running::start(&mut outside).finish().json();
            assert_eq!(facts(&seen), json!([true, true, "written"]), "{context}");

            let plan = run(&hotcell, &path, &["--plan", "-l", "python", "-c", "0"]).json();
            let prefix = hotcell.place(layout.prefix).display().to_string();
            assert_eq!(
                plan["trees"],
                json!([{"host": prefix, "cell": "/opt/python"}]),
                "{context}"
            );

            let asked = ["-l", "python", "-c", layout::PYTHON_PROBE, "--", &home, "/"];
            expect_alone(
                &run(&hotcell, &path, &asked).json(),
                "/opt/python",
                &context,
            );
        }
    }
}

#[test]
fn a_node_of_any_version_manager_runs_and_shows_nothing_else_of_the_home() {
    if !has("node") {
        return;
    }
    for hotcell in everyone() {
        let mut node = Interpreter::node(&hotcell);
        for layout in &NODES {
            let context = format!("{} as {}", layout.name, hotcell.name);
            let path = node.arrange(&hotcell, layout);
            let home = hotcell.home().display().to_string();

            let mut outside = Command::new(node.real());
            hotcell.dress(outside.args(["-e", layout::NODE_PROBE, "--", &home, &home]));
            let seen = Running::start(&mut outside).finish().json();
            assert_eq!(facts(&seen), json!([true, true, "written"]), "{context}");

            let asked = ["-l", "node", "-c", layout::NODE_PROBE, "--", &home, "/"];
            expect_alone(
                &run(&hotcell, &path, &asked).json(),
                "/opt/javascript",
                &context,
            );
        }
    }
}

#[test]
fn an_interpreter_whose_prefix_is_the_home_is_not_used() {
    if !has("python3") {
        return;
    }
    for hotcell in everyone() {
        for prefix in ["home", "home/.local"] {
            let bin = hotcell.make_folder(format!("{prefix}/bin"));
            fs::copy("/usr/bin/python3", bin.join("python3")).unwrap();
            let path = bin.to_str().unwrap();
            let prefix = hotcell.place(prefix).display().to_string();
            let asked = ["-l", "python", "-c", "print('ran')"];
            let answer = run(&hotcell, path, &asked);
            assert_eq!((answer.code, answer.out()), (Some(2), String::new()));
            let why = format!("using it would show all of {prefix} to the program");
            assert!(answer.err().contains(&why), "{}", answer.err());

            // The next one in PATH is no worse for it.
            let both = format!("{path}:/usr/bin");
            assert_eq!(run(&hotcell, &both, &asked).out(), "ran\n");
        }
    }
}

#[test]
fn a_shim_that_knows_no_version_is_passed_over() {
    let Some(hotcell) = anyone() else { return };
    let shims = hotcell.make_folder("home/.pyenv/shims");
    let shim = hotcell.write(
        "home/.pyenv/shims/python3",
        "#!/bin/sh\necho 'pyenv: version `3.99` is not installed' >&2\nexit 1\n",
    );
    crate::support::open_to_all(&shim);
    let shims = shims.to_str().unwrap();
    let asked = ["-l", "python", "-c", "print('ran')"];
    let answer = run(&hotcell, shims, &asked);
    assert_eq!((answer.code, answer.out()), (Some(2), String::new()));
    let why = "is a shim: it says \"pyenv: version `3.99` is not installed\"";
    assert!(answer.err().contains(why), "{}", answer.err());
    let both = format!("{shims}:/usr/bin");
    assert_eq!(run(&hotcell, &both, &asked).out(), "ran\n");
}

#[test]
fn the_python_of_this_shell_is_the_python_of_a_cell() {
    let own = rustix::process::getuid().as_raw();
    let Some(hotcell) = everyone().into_iter().find(|hotcell| hotcell.uid == own) else {
        return;
    };
    let (Some(path), Some(home)) = (std::env::var_os("PATH"), std::env::var_os("HOME")) else {
        return skip("no PATH or no HOME here");
    };
    let version = "import sys; print(sys.version)";
    let mut outside = Command::new("python3");
    let Ok(outside) = outside.args(["-c", version]).current_dir("/").output() else {
        return skip("no python3 in this PATH");
    };
    let mut command = hotcell.command();
    command.env("PATH", path).env("HOME", home);
    // What it remembers of shims belongs to the test.
    command.env("XDG_CACHE_HOME", hotcell.temporary());
    command.args(["run", "-l", "python", "-c", version]);
    let inside = Running::start(&mut command).finish();
    assert_eq!(
        inside.whole(),
        (
            Some(0),
            String::from_utf8_lossy(&outside.stdout).into_owned(),
            String::new()
        )
    );
}

fn run(hotcell: &Hotcell, path: &str, arguments: &[&str]) -> crate::support::Answer {
    let mut command = hotcell.command();
    command.env("PATH", path).arg("run").args(arguments);
    Running::start(&mut command).finish()
}

/// Whether it sees the home, whether it finds the canary, and what became of a file it
/// tried to put into its prefix.
fn facts(seen: &Value) -> Value {
    let canaries = seen["found"].as_array().map_or(0, Vec::len);
    json!([seen["home"], canaries > 0, seen["write"]])
}

fn expect_alone(seen: &Value, prefix: &str, context: &str) {
    let name = prefix.rsplit('/').next().unwrap_or_default();
    assert!(
        seen["prefix"]
            .as_str()
            .unwrap_or_default()
            .starts_with(prefix),
        "{context}: {seen}"
    );
    assert_eq!(seen["works"], json!(true), "{context}");
    assert_eq!(seen["home"], json!(false), "{context}");
    assert_eq!(seen["found"], json!([]), "{context}: a {CANARY} is visible");
    assert_eq!(
        seen["mounts"],
        json!(false),
        "{context}: a mount tells the home"
    );
    assert_eq!(seen["opt"], json!([name]), "{context}");
    let refused = ["EROFS", "EACCES"].map(Value::from);
    assert!(
        refused.contains(&seen["write"]),
        "{context}: {}",
        seen["write"]
    );
}
