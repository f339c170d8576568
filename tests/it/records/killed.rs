//! Servers that end, by whatever means: what is left of their records.

use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use super::{folder, hotcell_with, logs, recorded, serve, whole};
use crate::raw::fresh_word;
use crate::support::{Hotcell, PATIENCE, anyone, eventually, everyone};

/// How long servers are killed in the loop.
const LOOP: Duration = Duration::from_secs(8);

fn ids(hotcell: &Hotcell) -> Vec<Value> {
    let runs = logs(hotcell).into_iter();
    runs.map(|run| run["id"].clone()).collect()
}

#[test]
fn a_server_that_is_killed_at_any_moment_leaves_records_that_are_whole() {
    let Some(hotcell) = anyone() else { return };
    let begun = Instant::now();
    // Those that were seen in the records before a kill.
    let mut seen: Vec<Value> = Vec::new();
    let mut kills = 0;
    while begun.elapsed() < LOOP {
        let mut client = serve(&hotcell, &[]);
        // Another one writes to the same file.
        let mut beside = serve(&hotcell, &[]);
        let mut answered = Vec::new();
        for number in 0..6 {
            let code = format!("echo {} > a.txt; seq 200", fresh_word());
            let server = if number % 2 == 0 {
                &mut client
            } else {
                &mut beside
            };
            let result = server.run(json!({ "code": code, "language": "sh" }));
            let id = result["_meta"]["dev.hotcell/run"]["id"].clone();
            answered.push(id);
        }
        // What is recorded now and then is waited for: it must stay.
        if kills % 3 == 0 {
            let is_there = || {
                let ids = ids(&hotcell);
                answered.iter().all(|id| ids.contains(id))
            };
            assert!(eventually(PATIENCE, is_there), "{answered:?}");
            seen.append(&mut answered);
        }
        // From the middle of a write to long after it.
        thread::sleep(Duration::from_millis(kills * 37 % 400));
        let _ = client.child.kill();
        let _ = beside.child.kill();
        kills += 1;
    }
    assert!(kills >= 3, "{kills} kills");
    let database = Connection::open(folder(&hotcell).join("records.db")).expect("the file");
    let check: String = database
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("it can be checked");
    assert_eq!(check, "ok", "after {kills} kills");
    let ids = ids(&hotcell);
    assert!(!seen.is_empty());
    for id in &seen {
        assert!(ids.contains(id), "{id} is gone, of {}", ids.len());
    }
    // And it is written to as ever.
    let word = fresh_word();
    hotcell.run(&["-l", "sh", "-c", &format!("echo {word}")]);
    recorded(&hotcell, &word);
}

#[test]
fn a_job_is_lost_with_its_server_and_its_output_is_kept() {
    for hotcell in everyone() {
        for is_killed in [true, false] {
            let word = fresh_word();
            let mut client = serve(&hotcell, &[]);
            let code = format!("echo {word}; sleep 600");
            let arguments =
                json!({ "code": code, "language": "sh", "timeout": 600, "background": true });
            let started = client.run(arguments)["structuredContent"].clone();
            let id = started["job"].clone();
            let recorded = eventually(PATIENCE, || {
                let shown = hotcell_with(&hotcell, &["logs", id.as_str().expect("an id")]);
                shown.out().contains(&format!("--- stdout\n{word}"))
            });
            assert!(
                recorded,
                "{}: its output is recorded as it comes",
                hotcell.name
            );
            assert_eq!(whole(&hotcell, &id)["status"], "running");
            // Another server of the same user knows that it runs.
            let ask = |client: &mut crate::mcp::client::Client| {
                let params = json!({ "name": "session", "arguments": { "job": id } });
                client.request("tools/call", params)["result"].clone()
            };
            let mut other = serve(&hotcell, &[]);
            assert_eq!(ask(&mut other)["structuredContent"]["status"], "running");
            match is_killed {
                true => {
                    client.child.kill().expect("it runs");
                    client.child.wait().expect("it was killed");
                }
                false => drop(client.close()),
            }
            let mut later = serve(&hotcell, &[]);
            let lost = ask(&mut later);
            let facts = &lost["structuredContent"];
            assert_eq!(facts["status"], "lost", "{}: {lost}", hotcell.name);
            assert_eq!(facts["stdout"], format!("{word}\n"));
            assert_eq!(lost["isError"], true);
            assert_eq!(whole(&hotcell, &id)["status"], "lost");
        }
    }
}

#[test]
fn what_a_run_left_can_be_read_from_the_next_server() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    let code = "echo 1,2 > table.csv; seq 20000";
    let result = client.run(json!({ "code": code, "language": "sh" }));
    let facts = &result["structuredContent"];
    let file = facts["files"][0]["uri"].clone();
    let blocks = result["content"].as_array().expect("content").iter();
    let links = blocks.filter(|block| block["name"] == "stdout");
    let stdout = links
        .map(|link| link["uri"].clone())
        .next()
        .expect("a link");
    client.close();
    let mut later = serve(&hotcell, &[]);
    let read = |client: &mut crate::mcp::client::Client, uri: &Value| {
        let answer = client.request("resources/read", json!({ "uri": uri }));
        answer["result"]["contents"][0]["text"].clone()
    };
    assert_eq!(read(&mut later, &file), "1,2\n");
    let whole = read(&mut later, &stdout);
    assert_eq!(
        whole.as_str().map(|text| text.lines().count()),
        Some(20_000)
    );
    // As the input of a later run, too.
    let arguments =
        json!({ "code": "cat in.csv", "language": "sh", "files": { "in.csv": { "uri": file } } });
    assert_eq!(later.run(arguments)["structuredContent"]["stdout"], "1,2\n");
    // Control: where nothing is recorded, nothing outlives a server.
    let mut client = serve(&hotcell, &["--no-record"]);
    let result = client.run(json!({ "code": "echo 3 > a.csv", "language": "sh" }));
    let file = result["structuredContent"]["files"][0]["uri"].clone();
    assert_eq!(read(&mut client, &file), "3\n");
    client.close();
    assert_eq!(read(&mut later, &file), Value::Null);
}
