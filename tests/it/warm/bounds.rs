//! What waits costs little: no processor, memory within bounds, and nothing that nobody uses.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::{PAUSE, many, serve};
use crate::raw;
use crate::support::{PATH, PATIENCE, anyone, eventually, has, open_to_all};

/// The processes below another whose names begin so, and the ticks that all below it have used.
fn below(pid: u32, name: &str) -> (usize, u64) {
    let list = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut found = (0, 0);
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    for task in tasks.flatten() {
        let children = list(&format!("{}/children", task.path().display()));
        for child in children.split_whitespace().filter_map(|it| it.parse().ok()) {
            found.0 += usize::from(list(&format!("/proc/{child}/comm")).starts_with(name));
            let (more, ticks) = below(child, name);
            found = (found.0 + more, found.1 + ticks);
        }
    }
    let stat = list(&format!("/proc/{pid}/stat"));
    let rest = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let used = rest
        .skip(11)
        .take(2)
        .filter_map(|it| it.parse::<u64>().ok());
    (found.0, found.1 + used.sum::<u64>())
}

#[test]
fn a_server_that_is_left_alone_uses_no_processor_and_gives_back_what_nobody_uses() {
    let Some(hotcell) = anyone() else { return };
    if !has("node") || !has("python3") {
        return;
    }
    let mut client = serve(&hotcell);
    let server = client.server.child.id();
    let nodes = || below(server, "node").0;
    assert_eq!(nodes(), 0, "nobody has asked for one yet");
    let code = "console.log(6 * 7)";
    client.run(json!({ "code": code, "language": "javascript" }));
    assert!(eventually(PATIENCE, || nodes() >= 2), "{} wait", nodes());
    // A tick is a hundredth of a second. What is being started uses some, so the first seconds may be none of these.
    let mut used = 0;
    let rests = eventually(PATIENCE, || {
        let before = below(server, "-").1;
        thread::sleep(Duration::from_secs(10));
        used = below(server, "-").1 - before;
        used <= 10
    });
    assert!(rests, "{used} ticks in ten seconds");

    // Looked at every half minute, and given up when it was not used in between.
    assert!(
        eventually(3 * PATIENCE, || nodes() == 0),
        "{} wait still",
        nodes()
    );
    assert!(
        eventually(PATIENCE, || below(server, "python").0 >= 4),
        "these are kept"
    );
    let again = client.run(json!({ "code": code, "language": "javascript" }));
    assert_eq!(again["stdout"], "42\n");
    assert!(eventually(PATIENCE, || nodes() >= 1), "it comes back");
}

#[test]
fn a_burst_makes_a_pool_grow_within_its_bounds_and_all_answers_are_right() {
    let Some(hotcell) = anyone() else { return };
    if !has("node") {
        return;
    }
    let mut client = serve(&hotcell);
    let server = client.server.child.id();
    let outputs = many(
        &mut client,
        24,
        |n| json!({ "code": format!("console.log({n} * 3)"), "language": "javascript" }),
    );
    for (n, output) in outputs.iter().enumerate() {
        assert_eq!(output["stdout"], format!("{}\n", n * 3), "{output}");
    }
    // 384 MiB at most, at 48 MiB each; two of them may be running.
    let most = (0..20).map(|_| {
        thread::sleep(PAUSE);
        below(server, "node").0
    });
    assert!(most.max().is_some_and(|most| most <= 10));
}

#[test]
fn a_server_whose_pools_are_being_filled_leaves() {
    let Some(hotcell) = anyone() else { return };
    if !has("python3") {
        return;
    }
    let mut client = serve(&hotcell);
    let code = "import pandas";
    let id = client.begin_call("run", json!({ "code": code, "language": "python" }));
    client.answer(&id);
    let status = client.close().expect("it ends");
    assert!(status.success(), "{status}");
}

/// A language of Python's interpreter whose sessions have a prelude that is as long as this.
fn with_prelude(length: usize) -> String {
    let prelude = format!("# {}", "x".repeat(length));
    format!(
        "name = 'Long'\nextensions = ['long']\n[source]\nfile = 'main.py'\n[[command]]\nneeds = ['python3']\nwhere = ['-I', '-S', '-c', 'import sys; print(sys.executable)']\nrun = ['{{runtime}}', '-u', '{{file}}', '{{args...}}']\n[session]\nfile = 'session.py'\nprelude = '{prelude}'\n[warm]\ntiers = [{{ modules = [] }}, {{ modules = [] }}]\n"
    )
}

#[test]
fn a_prelude_that_fits_into_no_start_message_ends_no_run() {
    let Some(hotcell) = anyone() else { return };
    if !has("python3") {
        return;
    }
    let code = "print('zygote' in open('/proc/self/maps').read())";
    let run = json!({ "code": code, "language": "long", "session": "s" });
    let close = json!({ "action": "close", "name": "s" });
    // Control: one with a shorter prelude goes on in an interpreter that waited.
    for (length, waited) in [(100, "True\n"), (5000, "False\n")] {
        let mut client = raw::Stdio::start_as(&[], |command, home| {
            let folder = home.join("config/hotcell/languages");
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("long.toml"), with_prelude(length)).expect("a file");
            for path in ["", "config", "config/hotcell", "config/hotcell/languages"] {
                open_to_all(&home.join(path));
            }
            hotcell.dress(command);
            command
                .env("XDG_CONFIG_HOME", home.join("config"))
                .env("PATH", PATH)
                .stdin(Stdio::piped());
        });
        client.initialize("2025-11-25");
        let is_so = eventually(PATIENCE, || {
            let ran = client.run(run.clone());
            let said = ran["stdout"].clone();
            assert!(said == "True\n" || said == "False\n", "{length}: {ran}");
            let id = client.begin_call("session", close.clone());
            client.answer(&id);
            said == waited
        });
        assert!(is_so, "{length}");
    }
}
