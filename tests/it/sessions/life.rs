//! How a session begins, waits and ends.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{call, call_with, names, note, serve, sessions};
use crate::support::left::Before;
use crate::support::{PATIENCE, anyone, eventually, everyone};

#[test]
fn a_call_that_takes_too_long_is_interrupted_and_keeps_its_session() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        call(&mut client, "x = 1");
        for endless in [
            "x += 1\nwhile True: pass",
            "import time\nx += 1\ntime.sleep(50)",
            "import asyncio\nx += 1\nawait asyncio.sleep(50)",
        ] {
            let call = json!({ "code": endless, "language": "python", "timeout": 1 });
            let facts = call_with(&mut client, call);
            assert_eq!(facts["status"], "timeout", "{}: {facts}", hotcell.name);
            assert!(
                facts["stderr"]
                    .as_str()
                    .unwrap()
                    .ends_with("KeyboardInterrupt\n"),
                "{facts}"
            );
            assert!(note(&facts).contains("interrupted"), "{facts}");
        }
        let facts = call(&mut client, "x");
        assert_eq!(facts["value"], "4", "{}: {facts}", hotcell.name);
    }
}

#[test]
fn a_call_that_cannot_be_interrupted_is_killed_and_the_answer_says_what_is_lost() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        let deaf = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('deaf', flush=True)\nwhile True: pass";
        let begun = Instant::now();
        let facts = call_with(
            &mut client,
            json!({ "code": deaf, "language": "python", "timeout": 1 }),
        );
        assert!(
            begun.elapsed() > Duration::from_secs(3),
            "it had two seconds to stop"
        );
        assert_eq!(
            (&facts["status"], &facts["stdout"]),
            (&json!("timeout"), &json!("deaf\n"))
        );
        assert!(note(&facts).contains("are lost"), "{facts}");
        let facts = call(&mut client, "1");
        assert_eq!(facts["value"], "1");
        assert!(note(&facts).contains("started anew"), "{facts}");
        assert_eq!(note(&call(&mut client, "1")), "", "that is said once");
    }
}

#[test]
fn a_call_that_is_cancelled_is_interrupted_and_keeps_its_session() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    call(&mut client, "x = 1");
    let arguments = json!({ "session": "s", "language": "python", "code": "x = 2\nopen('begun', 'w')\nwhile True: pass" });
    let id = client.post(
        "tools/call",
        json!({ "name": "run", "arguments": arguments }),
    );
    // It runs once the list says so.
    let running = |client: &mut _| {
        let listed = sessions(client, json!({ "action": "list" }));
        listed["sessions"][0]["idle_s"].is_null()
    };
    assert!(eventually(PATIENCE, || running(&mut client)));
    std::thread::sleep(Duration::from_millis(500));
    let params = json!({ "requestId": id });
    client
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    let facts = call(&mut client, "import os\nos.path.exists('begun'), x");
    assert_eq!(facts["value"], "(True, 2)", "{facts}");
}

#[test]
fn too_much_memory_ends_the_session_and_says_so() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    call(&mut client, "x = 1");
    let facts = call(
        &mut client,
        "y = bytearray(3 << 30)\nfor i in range(0, len(y), 4096): y[i] = 1",
    );
    assert_eq!(facts["error"]["kind"], "memory", "{facts}");
    let facts = call(&mut client, "'x' in globals()");
    assert!(
        ["true", "false"].contains(&facts["value"].as_str().unwrap()),
        "it goes on or starts anew"
    );
}

#[test]
fn calls_to_one_session_run_in_order_and_sessions_run_side_by_side() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    for session in ["a", "b"] {
        call_with(
            &mut client,
            json!({ "session": session, "language": "python", "code": "import time\nseen = []" }),
        );
    }
    let mut posted = Vec::new();
    for n in 0..3 {
        for session in ["a", "b"] {
            let code = format!(
                "begun = time.monotonic()\nseen.append({n})\ntime.sleep(0.5)\nseen.append({n})\n[seen, begun, time.monotonic()]"
            );
            let arguments = json!({ "session": session, "language": "python", "code": code });
            posted.push(client.post(
                "tools/call",
                json!({ "name": "run", "arguments": arguments }),
            ));
        }
    }
    let answer = |id| client.answer(id)["result"]["structuredContent"]["value"].clone();
    let values: Vec<Value> = posted.into_iter().map(answer).collect();
    for last in &values[4..] {
        assert_eq!(last[0], json!([0, 0, 1, 1, 2, 2]), "in order");
    }
    // Some call of one session ran while one of the other did.
    let overlap = |one: &Value, other: &Value| {
        let at = |value: &Value, n: usize| value[n].as_f64().expect("a time");
        at(one, 1) < at(other, 2) && at(other, 1) < at(one, 2)
    };
    let (of_a, of_b) = ([0, 2, 4], [1, 3, 5]);
    let mut pairs = of_a.iter().flat_map(|a| of_b.iter().map(move |b| (*a, *b)));
    assert!(
        pairs.any(|(a, b)| overlap(&values[a], &values[b])),
        "side by side: {values:?}"
    );
}

#[test]
fn a_session_that_waits_holds_no_turn_and_uses_no_processor() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &["--max-runs", "1"]);
    let busy = "import threading, time\nticks = 0\ndef tick():\n    global ticks\n    while True:\n        ticks += 1\n        time.sleep(0.01)\nthreading.Thread(target=tick, daemon=True).start()";
    call(&mut client, busy);
    let run = client.run(json!({ "code": "print(1)", "language": "python" }));
    assert_eq!(run["structuredContent"]["stdout"], "1\n");
    // Frozen after a second: then nothing counts.
    std::thread::sleep(Duration::from_secs(4));
    let facts = call(
        &mut client,
        "before = ticks\ntime.sleep(0.3)\nprint(before < 200, ticks > before)",
    );
    assert_eq!(facts["stdout"], "True True\n", "{facts}");
}

#[test]
fn sessions_are_listed_closed_bounded_and_gone_when_nobody_uses_them() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &["--max-sessions", "2", "--session-idle", "3s"]);
    assert_eq!(names(&mut client), [""; 0]);
    for name in ["a", "b"] {
        let call = json!({ "session": name, "language": "python", "code": "x = 1" });
        assert_eq!(call_with(&mut client, call)["status"], "ok");
    }
    let third = json!({ "session": "c", "language": "python", "code": "x = 1" });
    let facts = call_with(&mut client, third.clone());
    assert_eq!(
        (&facts["status"], &facts["error"]["kind"]),
        (&json!("rejected"), &json!("busy"))
    );
    assert_eq!(names(&mut client), ["a", "b"]);
    let listed = sessions(&mut client, json!({ "action": "list" }));
    let first = &listed["sessions"][0];
    assert_eq!(
        (&first["language"], &first["calls"]),
        (&json!("python"), &json!(1)),
        "{first}"
    );
    // By the name that `run` has for it, too.
    let closed = sessions(&mut client, json!({ "action": "close", "session": "a" }));
    assert_eq!(closed, json!({ "closed": "a" }));
    let again = sessions(&mut client, json!({ "action": "close", "name": "a" }));
    assert_eq!(again["error"]["message"], "there is no session `a`");
    assert_eq!(call_with(&mut client, third)["status"], "ok");
    assert_eq!(names(&mut client), ["b", "c"]);
    assert!(
        eventually(PATIENCE, || names(&mut client).is_empty()),
        "they expire"
    );
    let again = json!({ "session": "b", "language": "python", "code": "'x' in globals()" });
    let facts = call_with(&mut client, again);
    assert_eq!(facts["value"], "false");
    assert!(note(&facts).contains("not used for 3 s"), "{facts}");
}

#[test]
fn closing_a_session_ends_the_call_that_it_runs() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    call(&mut client, "x = 1");
    let arguments = json!({ "session": "s", "language": "python", "code": "while True: pass" });
    let id = client.post(
        "tools/call",
        json!({ "name": "run", "arguments": arguments }),
    );
    std::thread::sleep(Duration::from_millis(300));
    sessions(&mut client, json!({ "action": "close", "name": "s" }));
    let facts = client.answer(id)["result"]["structuredContent"].clone();
    assert_eq!(facts["status"], "cancelled", "{facts}");
    assert_eq!(call(&mut client, "'x' in globals()")["value"], "false");
}

#[test]
fn a_later_call_gets_no_arguments_and_a_session_needs_a_name() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    call(&mut client, "x = 1");
    for (arguments, why) in [
        (json!({ "code": "1", "args": ["a"] }), "takes no arguments"),
        (
            json!({ "code": "1", "session": "a b" }),
            "not a name for a session",
        ),
    ] {
        let facts = call_with(&mut client, arguments);
        assert_eq!(facts["error"]["kind"], "invalid_request", "{facts}");
        let message = facts["error"]["message"].as_str().unwrap();
        assert!(message.contains(why), "{message}");
    }
    assert_eq!(call(&mut client, "x")["value"], "1", "it is as it was");
    assert_eq!(names(&mut client), ["s"]);
}

#[test]
fn a_later_call_that_asks_for_other_limits_is_told_that_the_session_keeps_its_own() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    let first = json!({ "code": "x = 1", "language": "python", "memory": "256M" });
    assert_eq!(note(&call_with(&mut client, first)), "");
    let asked = json!({ "code": "x", "memory": "1G", "processes": 8, "network": ["example.com"] });
    let facts = call_with(&mut client, asked);
    assert_eq!(
        (&facts["value"], &facts["status"]),
        (&json!("1"), &json!("ok"))
    );
    let said = note(&facts);
    assert!(said.contains("keeps"), "{said}");
    assert!(
        said.contains("memory, processes, network of this call"),
        "{said}"
    );
    let same = json!({ "code": "x", "memory": "256M", "timeout": 9 });
    assert_eq!(note(&call_with(&mut client, same)), "", "it is what it has");
    assert_eq!(note(&call(&mut client, "x")), "", "nobody asked");
}

#[test]
fn nothing_is_left_of_a_session_when_its_server_ends() {
    for hotcell in everyone() {
        let before = Before::look(&hotcell);
        let mut client = serve(&hotcell, &[]);
        call(
            &mut client,
            "import subprocess\nchild = subprocess.Popen(['sleep', '1000'])",
        );
        call_with(
            &mut client,
            json!({ "session": "t", "language": "python", "code": "open('file', 'w').write('x')" }),
        );
        let pid = client.child.id();
        client.close();
        before.expect_nothing_left(pid);
    }
}
