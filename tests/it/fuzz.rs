//! JSON-RPC input by chance: arbitrary bytes, and messages changed a little (PRO-16).
//!
//! Seeded, so that a failure can be had again: `FUZZ_SEED` is another sequence and
//! `FUZZ_ROUNDS` a longer one, as for 200,000 in-process rounds by hand. Whatever comes
//! in, each request is answered exactly once, with its own id, soon, and with a message.

mod mutation;

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotcell::caller::Caller;
use hotcell::mcp::{
    Answer, Arguments, Boxed, Catalog, Context, Fault, Identity, Message, Outbox, Peer, Server,
    Session, Tool, Transport, parse,
};
use serde_json::{Map, Value, json};

use crate::raw::{PATIENCE, Stdio, protocol};
use mutation::Source;

fn number(variable: &str, usual: u64) -> u64 {
    let text = std::env::var(variable).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn source() -> Source {
    let seed = number("FUZZ_SEED", 0x5eed);
    println!("FUZZ_SEED={seed}");
    Source::new(seed)
}

/// A tool that answers at once, in the place of the one that runs programs.
struct Stub;

impl Tool for Stub {
    fn listing(&self) -> Value {
        json!({ "name": "run", "inputSchema": { "type": "object" } })
    }

    fn call<'a>(
        &'a self,
        arguments: Arguments,
        _: &'a Arc<Context>,
    ) -> Boxed<'a, Result<Answer, Fault>> {
        let text = Value::from(arguments).to_string();
        let content = json!([{ "type": "text", "text": text }]);
        let answer = Map::from_iter([("content".to_owned(), content)]);
        Box::pin(async { Ok(Answer::Complete(answer)) })
    }
}

#[test]
fn whatever_comes_in_is_read_and_answered_without_harm() {
    let mut source = source();
    let mut catalog = Catalog::default();
    catalog.add_tool(Stub);
    let identity = Identity {
        name: "fuzzed".to_owned(),
        title: "fuzzed".to_owned(),
        instructions: None,
    };
    let server = Server::new(identity, catalog);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (out, mut messages) = Outbox::new(1024);
    let session = Arc::new(Session::default());
    let transports = [
        Transport::Stdio,
        http(None),
        http(Some("2025-06-18")),
        http(Some("2026-07-28")),
    ];
    let (mut requests, mut refused) = (0, 0);
    let mut taken_back = HashSet::new();
    for round in 0..number("FUZZ_ROUNDS", 20_000) {
        let bytes = source.message();
        let start = Instant::now();
        match parse(&bytes) {
            Ok(Message::Request(request)) => {
                requests += 1;
                let id = request.id.to_string();
                let value = request.id.to_value().to_string();
                let peer = Peer {
                    caller: Caller::local(),
                    session: session.clone(),
                    transport: transports[round as usize % transports.len()].clone(),
                    out: out.clone(),
                    held: std::sync::Arc::default(),
                };
                let listens = request.method == "subscriptions/listen";
                let answer = runtime.block_on(async {
                    tokio::time::timeout(
                        if listens {
                            Duration::from_millis(1)
                        } else {
                            PATIENCE
                        },
                        server.answer(request, &peer),
                    )
                    .await
                });
                match answer {
                    // A cancellation may come before its request.
                    Ok(None) => assert!(taken_back.contains(&value), "no answer to {id}"),
                    Ok(Some(reply)) => {
                        let reply = reply.message;
                        protocol(reply.as_bytes());
                        let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
                        assert!(reply.starts_with(&start), "{id} was answered by {reply}");
                    }
                    Err(_) => assert!(listens, "no answer to {}", shown(&bytes)),
                }
            }
            Ok(other) => {
                if let Message::Notification(told) = &other {
                    taken_back.extend(told.params.get("requestId").map(ToString::to_string));
                }
                server.receive(other, &session);
            }
            Err(garbled) => {
                refused += 1;
                let fault = garbled.to_message();
                protocol(fault.as_bytes());
                assert!(fault.len() < 8000, "{} to {}", fault.len(), shown(&bytes));
            }
        }
        assert!(start.elapsed() < PATIENCE, "{}", shown(&bytes));
        while let Ok(message) = messages.try_recv() {
            protocol(message.as_bytes());
        }
    }
    // Control: the changes neither break everything nor nothing.
    println!("{requests} requests, {refused} refused");
    assert!(requests > 100 && refused > 100);
}

fn http(version: Option<&str>) -> Transport {
    Transport::Http {
        version: version.map(str::to_owned),
    }
}

#[test]
fn a_server_with_a_real_engine_answers_each_of_many_odd_requests_once() {
    let mut source = source();
    let mut client = Stdio::open(&["--max-runs", "4"]);
    // What is kept for good is kept after the first run.
    client.run(json!({ "code": ":", "language": "bash" }));
    let before = client.server.memory("VmRSS");
    let rounds = number("FUZZ_ROUNDS", 20_000) / 20;
    for _ in 0..rounds.div_ceil(50) {
        // A request's id may be anybody's, so answers are counted by id.
        let mut expected: BTreeMap<String, i64> = BTreeMap::new();
        let mut bytes = Vec::new();
        let mut sent = Vec::new();
        for _ in 0..50 {
            let line = source.message();
            if line.contains(&b'\n') || line.trim_ascii().is_empty() {
                continue;
            }
            let id = match parse(&line) {
                // These are answered when they end.
                Ok(Message::Request(request)) if request.method == "subscriptions/listen" => {
                    continue;
                }
                Ok(Message::Request(request)) => request.id.to_string(),
                Ok(Message::Notification(_) | Message::Response { .. }) => continue,
                Err(garbled) => match garbled.id {
                    Some(id) => id.to_string(),
                    None => "none".to_owned(),
                },
            };
            *expected.entry(id).or_default() += 1;
            bytes.extend_from_slice(&line);
            bytes.push(b'\n');
            sent.push(line);
        }
        client.write(&bytes);
        let start = Instant::now();
        let mut left: i64 = expected.values().sum();
        while left > 0 {
            let Some(message) = client.next(PATIENCE) else {
                let lines: Vec<String> = sent.iter().map(|line| shown(line)).collect();
                panic!("no answer to {expected:?} of {}", lines.join("\n"));
            };
            if message.get("method").is_some() {
                continue;
            }
            let line = client.lines.last().expect("it came on a line");
            let id = id_of(line);
            let count = expected.get_mut(&id);
            let count = count.unwrap_or_else(|| panic!("nobody asked for {message}"));
            *count -= 1;
            assert!(*count >= 0, "answered twice: {message}");
            left -= 1;
        }
        assert!(start.elapsed() < PATIENCE);
        client.ping();
        client.lines.clear();
    }
    let grown = client.server.memory("VmRSS").saturating_sub(before);
    assert!(grown < 50 << 10, "{grown} KiB more after {rounds} rounds");
    assert!(
        !client.server.log().contains("panicked"),
        "{}",
        client.server.log()
    );
    assert!(client.close().is_some_and(|status| status.success()));
}

/// The id of a response as it was written.
fn id_of(line: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Response<'a> {
        #[serde(borrow)]
        id: Option<&'a serde_json::value::RawValue>,
    }
    let response: Response = serde_json::from_slice(line).expect("a message");
    let id = response.id.map(|id| id.get()).filter(|id| *id != "null");
    id.unwrap_or("none").to_owned()
}

fn shown(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(400)].escape_ascii().to_string()
}
