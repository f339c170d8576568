//! Runs that go on when their call was answered.

use serde_json::{Value, json};

use crate::raw::http::Http;
use crate::raw::{PATIENCE, Stdio, fresh_word, processes_with, wait_until};

fn job(client: &mut Stdio, arguments: Value) -> Value {
    client.call("session", arguments)["structuredContent"].clone()
}

#[test]
fn a_run_in_the_background_is_answered_at_once_and_its_result_comes_later() {
    let mut client = Stdio::open(&[]);
    let code = "import time\nprint('begun', flush=True)\ntime.sleep(1)\n\
                open('out.txt', 'w').write('kept')\nprint('done')";
    let started = client.run(json!({ "code": code, "language": "python", "background": true }));
    assert_eq!(started["status"], "running", "{started}");
    let id = &started["job"];
    let begun = wait_until(PATIENCE, || {
        job(&mut client, json!({ "job": id }))["stdout"] != ""
    });
    assert!(begun.is_some());
    let ended = wait_until(PATIENCE, || {
        job(&mut client, json!({ "job": id, "wait": 20 }))["status"] == "ok"
    });
    assert!(ended.is_some());
    let ended = job(&mut client, json!({ "job": id }));
    assert_eq!(ended["stdout"], "begun\ndone\n");
    let uri = &ended["files"][0]["uri"];
    let read = client.request("resources/read", json!({ "uri": uri }));
    assert_eq!(read["result"]["contents"][0]["text"], "kept");
    let listed = client.call("session", json!({ "action": "list" }));
    let facts = &listed["structuredContent"]["jobs"][0];
    assert_eq!((&facts["job"], &facts["status"]), (id, &json!("ok")));
    let text = format!("job {}: ok", id.as_str().unwrap_or_default());
    assert_eq!(listed["content"][0]["text"], text);
}

#[test]
fn a_call_that_takes_too_long_for_clients_becomes_a_job() {
    let mut client = Stdio::open(&["--answer-within", "1s"]);
    let code = "print('one', flush=True); import time; time.sleep(600)";
    let arguments = json!({ "code": code, "language": "python", "timeout": 600 });
    let running = client.run(arguments);
    assert_eq!(running["status"], "running", "{running}");
    let id = &running["job"];
    let printed = wait_until(PATIENCE, || {
        let running = job(&mut client, json!({ "job": id }));
        (&running["stdout"], &running["next"]) == (&json!("one\n"), &json!(4))
    });
    assert!(printed.is_some());
    let since = job(&mut client, json!({ "job": id, "since": 4 }));
    assert_eq!(
        (&since["status"], &since["stdout"]),
        (&json!("running"), &json!(""))
    );

    let ended = job(&mut client, json!({ "job": id, "action": "cancel" }));
    assert_eq!(
        (&ended["status"], &ended["stdout"]),
        (&json!("cancelled"), &json!("one\n"))
    );
    // Control: one that is quick enough is answered as ever.
    let mut client = Stdio::open(&[]);
    let quick = client.run(json!({ "code": "print(1)", "language": "python" }));
    assert_eq!(quick["status"], "ok");
}

#[test]
fn a_job_outlives_its_connection_and_never_the_server() {
    let server = Http::start_as(&["--http", "127.0.0.1:0"], |_, _| {});
    let word = fresh_word();
    let code = format!("sleep 600 # {word}");
    let arguments = json!({ "code": code, "language": "bash", "timeout": 600, "background": true, "args": [word] });
    let started = server.call("run", arguments)["structuredContent"].clone();
    let runs = || !processes_with(&word).is_empty();
    assert!(wait_until(PATIENCE, runs).is_some(), "{started}");
    // Each call has a connection of its own.
    let found = server.call("session", json!({ "job": started["job"] }));
    assert_eq!(found["structuredContent"]["status"], "running");
    drop(server);
    assert!(
        wait_until(PATIENCE, || !runs()).is_some(),
        "it outlives the server"
    );
}

#[test]
fn a_job_that_is_not_there_is_said_to_be_unknown() {
    let mut client = Stdio::open(&[]);
    for id in [
        json!("nothing"),
        json!(5),
        json!("../x"),
        json!("x".repeat(100_000)),
    ] {
        let result = client.call("session", json!({ "job": id }));
        assert_eq!(result["isError"], true);
        assert_eq!(
            result["structuredContent"]["error"]["kind"],
            "invalid_request"
        );
    }
    let listed = job(&mut client, json!({ "action": "list" }));
    assert_eq!(listed, json!({ "sessions": [], "jobs": [] }));
    let which = client.call("session", json!({ "action": "cancel" }));
    assert_eq!(which["isError"], true, "{which}");
    let bad = client.run(json!({ "code": "1", "language": "python", "background": 1 }));
    assert_eq!(bad["status"], "rejected");
}

#[test]
fn a_parameter_that_a_tool_does_not_have_is_named_and_nothing_is_done() {
    let mut client = Stdio::open(&[]);
    for (tool, arguments, has) in [
        (
            "session",
            json!({ "action": "list", "nmae": "a" }),
            "action, name, to, job, since, wait",
        ),
        (
            "run",
            json!({ "code": "print(1)", "sesion": "a" }),
            "session",
        ),
    ] {
        let result = client.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        let text = result["content"][0]["text"].as_str().expect("a text");
        assert!(text.contains("unknown parameter"), "{text}");
        assert!(text.contains(has), "{text}");
    }
    // The control: without it the same call is answered.
    let listed = client.call("session", json!({ "action": "list" }));
    assert_eq!(listed["isError"], false, "{listed}");
}
