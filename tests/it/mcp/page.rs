//! The page of a server over HTTP: what is sent without a token, and what it asks for with one.

use serde_json::{Value, json};

use super::http::{Server, call};
use crate::support::{PATIENCE, eventually};

const FILES: [(&str, &str); 3] = [
    ("/", "text/html"),
    ("/page.css", "text/css"),
    ("/page.js", "text/javascript"),
];

#[test]
fn the_page_comes_to_everybody_and_what_it_shows_only_with_the_token() {
    let server = Server::start(&[]);
    for (path, kind) in FILES {
        let mut reader = server.send("GET", path, &[], "");
        assert_eq!(reader.status, 200, "{path}");
        let header = |name| reader.header(name).unwrap_or_default().to_owned();
        assert!(header("content-type").starts_with(kind), "{path}");
        let policy = header("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.split("; ").any(|it| it == part), "{part}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(header("cache-control"), "no-store");
        assert_eq!(header("access-control-allow-origin"), "");
        // It knows nothing of this server.
        let body = reader.body();
        assert!(!body.contains(&server.token()), "{path}");
    }
    let state = read("hotcell://state");
    assert_eq!(server.post(&[], &state).0, 401);
    let bearer = format!("Bearer {}", server.token());
    let (status, answer) = server.post(&[("authorization", &bearer)], &state);
    assert_eq!(status, 200, "control: {answer}");

    for (name, value) in [("host", "evil.test"), ("origin", "http://evil.test")] {
        let status = server.send("GET", "/", &[(name, value)], "").status;
        assert_eq!(status, 403, "{name}: {value}");
    }
    let own = format!("http://localhost:{}", server.port);
    assert_eq!(server.send("GET", "/", &[("origin", &own)], "").status, 200);
}

#[test]
fn the_page_has_no_script_of_its_own_in_it_and_loads_nothing_from_elsewhere() {
    let files = [
        include_str!("../../../web/index.html"),
        include_str!("../../../web/page.css"),
        include_str!("../../../web/page.js"),
    ];
    for file in files {
        for word in ["http:", "https:", "//cdn", "@import", "url("] {
            assert!(!file.contains(word), "{word}");
        }
        // What a program says must not become HTML, or code.
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
            "localStorage",
            "document.cookie",
        ] {
            assert!(!file.contains(word), "{word}");
        }
    }
    let html = files[0];
    assert_eq!(html.matches("<script").count(), 1);
    assert!(html.contains(r#"<script type="module" src="page.js"></script>"#));
    for word in [" style=", "<style", " onclick", " onload", "javascript:"] {
        assert!(!html.contains(word), "{word}");
    }
}

#[test]
fn a_server_that_replaces_another_has_no_page() {
    let server = Server::start(&["--as", "code-runner", "--no-auth"]);
    assert_eq!(server.send("GET", "/", &[], "").status, 404);
    let (_, answer) = server.post(&[], &read("hotcell://state"));
    assert!(answer["error"].is_object(), "{answer}");
}

#[test]
fn a_run_that_somebody_waits_for_is_seen_and_ended_from_the_page() {
    let server = Server::start(&[]);
    let bearer = format!("Bearer {}", server.token());
    let ask = |message: &Value| {
        let (status, answer) = server.post(&[("authorization", &bearer)], message);
        assert_eq!(status, 200, "{answer}");
        answer["result"].clone()
    };
    let state = || -> Value {
        let read = ask(&read("hotcell://state"));
        serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap()
    };
    let job = |arguments: Value| {
        let params = json!({ "name": "session", "arguments": arguments });
        let message =
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
        ask(&message)["structuredContent"].clone()
    };
    let before = state();
    assert_eq!(before["runs"], json!([]), "{before}");
    assert!(before["isolation"].is_null(), "{before}");

    let code = "\n# <b>waits</b>\nimport time\nprint('<img src=x>', flush=True)\ntime.sleep(600)";
    std::thread::scope(|scope| {
        let arguments = json!({ "code": code, "language": "python", "timeout": 700 });
        let (server, bearer) = (&server, &bearer);
        let waiting = scope.spawn(move || {
            // Answered once, however long it takes.
            let headers = [
                ("content-type", "application/json"),
                ("accept", "application/json"),
                ("authorization", bearer.as_str()),
            ];
            let body = call(1, arguments).to_string();
            let body = server.send("POST", "/mcp", &headers, &body).body();
            let answer: Value = serde_json::from_str(&body).unwrap();
            answer["result"].clone()
        });
        let mut id = String::new();
        let is_seen = || {
            let state = state();
            let run = &state["runs"][0];
            id = run["id"].as_str().unwrap_or_default().to_owned();
            run["status"] == "running"
                && run["first_line"] == "# <b>waits</b>"
                && state["running"] == 1
        };
        assert!(eventually(PATIENCE, is_seen));
        let mut said = Value::Null;
        let has_printed = || {
            said = job(json!({ "job": id }));
            said["stdout"] == "<img src=x>\n"
        };
        assert!(eventually(PATIENCE, has_printed), "{said}");
        assert_eq!(said["status"], "running");
        // Not a job, so those who ask for jobs are not told.
        assert_eq!(job(json!({ "action": "list" }))["jobs"], json!([]));

        job(json!({ "job": id, "action": "cancel" }));
        let answer = waiting.join().unwrap();
        assert_eq!(
            answer["structuredContent"]["status"], "cancelled",
            "{answer}"
        );
        assert_eq!(answer["structuredContent"]["stdout"], "<img src=x>\n");
        let state = state();
        let run = &state["runs"][0];
        assert_eq!(run["id"], *id);
        assert_eq!(run["status"], "cancelled", "{state}");
        assert_eq!(run["first_line"], "# <b>waits</b>");
        assert!(state["isolation"]["level"].is_string(), "{state}");
        assert_eq!(job(json!({ "job": id }))["stdout"], "<img src=x>\n");
    });
}

#[test]
fn strangers_without_a_token_are_told_of_no_run_that_has_ended() {
    let server = Server::start(&["--no-auth"]);
    let (_, answer) = server.post(
        &[],
        &call(1, json!({ "code": "print(1)", "language": "python" })),
    );
    let id = &answer["result"]["_meta"]["dev.hotcell/run"]["id"];
    assert!(id.is_string(), "{answer}");
    let (_, answer) = server.post(&[], &read("hotcell://state"));
    let state = answer["result"]["contents"][0]["text"].as_str().unwrap();
    let state: Value = serde_json::from_str(state).unwrap();
    assert_eq!(state["runs"], json!([]), "{state}");
    assert_eq!(state["recorded"], false, "{state}");
}

fn read(uri: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 9, "method": "resources/read", "params": { "uri": uri } })
}
