//! What waits costs little: no processor, memory within bounds, and nothing that nobody uses.

use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::{PAUSE, many, serve};
use crate::support::{PATIENCE, anyone, eventually, has};

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
