//! The hostile suite against the server: what `tests/attacks/attacks.json` says about
//! HTTP and the protocol, and those of its other cases that need a server to be seen.
//!
//! `protocol` and `http` carry out the steps that the cases have in words, `output` and
//! `crossing` run programs and judge by the raw bytes that come back, `scope` says what
//! is left out and why. After every case the server answers, its log has no panic, and
//! the secret in its environment is in nothing that it said.
//!
//! `HOSTILE=PRO-08` drives one case, `HOSTILE_LONG=1` takes the long way where there is one.

mod artifacts;
mod crossing;
mod http;
mod output;
mod protocol;
mod scope;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, OnceLock};
use std::thread;

use serde_json::Value;

use crate::raw::http::Http;
use crate::raw::{Started, Stdio, fresh_word};

/// A case's first six letters, and what is done.
type Case = (&'static str, fn());

/// How many cases run side by side.
const IN_FLIGHT: usize = 3;

#[test]
fn no_hostile_client_or_program_gets_the_better_of_the_server() {
    let wanted = std::env::var("HOSTILE").unwrap_or_default();
    let cases: Vec<&Case> = [
        protocol::CASES,
        http::CASES,
        output::CASES,
        crossing::CASES,
        artifacts::CASES,
    ]
    .into_iter()
    .flatten()
    .filter(|(id, _)| wanted.is_empty() || wanted.split(',').any(|name| name == *id))
    .collect();
    let failed = drive(&cases);
    for (id, reason) in scope::PARTLY {
        println!("{id} is driven in part: {reason}");
    }
    let contained = cases.len() - failed.len();
    println!("contained {contained}/{} (server)", cases.len());
    assert!(failed.is_empty(), "not contained: {}", failed.join(", "));
}

fn drive(cases: &[&Case]) -> Vec<&'static str> {
    let queue = Mutex::new(cases.iter());
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..IN_FLIGHT {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no case panics here").next();
                    let Some((id, attack)) = next else { return };
                    let ended = catch_unwind(AssertUnwindSafe(attack));
                    println!(
                        "{id} {}",
                        if ended.is_ok() { "contained" } else { "BREACH" }
                    );
                    if ended.is_err() {
                        failed.lock().expect("no case panics here").push(*id);
                    }
                }
            });
        }
    });
    failed.into_inner().expect("no case panics here")
}

/// Whether there is time for everything.
fn long() -> bool {
    std::env::var_os("HOSTILE_LONG").is_some()
}

/// What a program of the suite is, by the start of its name.
fn program(id: &str) -> String {
    let cases = scope::all();
    let found = cases
        .iter()
        .find(|case| case["id"].as_str().is_some_and(|name| name.starts_with(id)));
    let code = found.and_then(|case| case["code"].as_str());
    code.expect("the suite has this case").to_owned()
}

/// The value in the environment of every server here.
fn secret() -> &'static str {
    static SECRET: OnceLock<String> = OnceLock::new();
    SECRET.get_or_init(|| format!("sbx-canary-{}", fresh_word()))
}

/// A server on stdio that was opened, with the secret in its environment.
fn stdio(arguments: &[&str]) -> Stdio {
    let mut client = unopened(arguments);
    client.initialize("2025-11-25");
    client
}

fn unopened(arguments: &[&str]) -> Stdio {
    Stdio::start_as(arguments, |command, _| {
        command.env("SBX_CANARY_SECRET", secret());
    })
}

fn over_http() -> Http {
    Http::start_as(&["--http", "127.0.0.1:0"], |command, _| {
        command.env("SBX_CANARY_SECRET", secret());
    })
}

/// What must be true of a server after any attack.
fn unharmed(mut client: Stdio) {
    client.ping();
    let unasked: Vec<String> = client.unasked().iter().map(|one| one.to_string()).collect();
    assert_eq!(unasked, [""; 0], "responses that nobody asked for");
    assert_eq!(client.server.temporary_files(), [""; 0]);
    let status = client.close();
    assert!(
        status.is_some_and(|status| status.success()),
        "it does not end"
    );
    for line in &client.lines {
        assert!(!says(line, secret()), "the secret is in an answer");
    }
    quiet_log(&client.server);
}

fn still_serves(server: &Http) {
    server.serves();
    assert_eq!(server.server.temporary_files(), [""; 0]);
    quiet_log(&server.server);
}

fn quiet_log(server: &Started) {
    let log = server.log();
    assert!(!log.contains("panicked"), "{log}");
    assert!(!log.contains(secret()), "the secret is in the log");
    assert!(!log.contains('\u{1b}'), "an escape in the log");
}

fn says(bytes: &[u8], word: &str) -> bool {
    bytes
        .windows(word.len())
        .any(|part| part == word.as_bytes())
}

/// The code of a fault, or 0 if the message is none.
fn code(message: &Value) -> i64 {
    message["error"]["code"].as_i64().unwrap_or(0)
}
