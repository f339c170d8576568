//! Cases in which one run, client or secret could be seen by another.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Case, code, long, over_http, program, stdio, still_serves, unharmed};
use crate::raw::http::{Answer, Http};
use crate::raw::{PATIENCE, fresh_word, processes_with, wait_until};

pub const CASES: &[Case] = &[
    ("LEK-03", stdin_is_not_the_protocol),
    ("LEK-07", secrets_on_command_lines_and_in_errors),
    ("XRN-01", leftovers_of_a_run),
    ("XRN-02", another_principals_things),
    ("XRN-03", background_process),
    ("XRN-09", pollution_of_what_waits),
    ("XRN-10", session_ids),
];

fn pollution_of_what_waits() {
    let mut client = stdio(&[]);
    let pollute = "import builtins, os, signal, sys, threading, time\n\
        real = print\nbuiltins.print = lambda *a: None\nsys.modules['json'] = None\n\
        os.environ['X'] = 'sbx-canary'\nos.dup2(1, 100)\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n\
        open('/tmp/sbx-canary', 'w').close(); open('sbx-canary', 'w').close(); os.chdir('/tmp')\nreal('polluted')";
    let look = "import os, signal, sys, threading\nimport json\n\
        print(json.dumps([os.getcwd(), os.environ.get('X'), os.path.exists('/proc/self/fd/100'), \
        signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, threading.active_count(), os.listdir('/tmp'), sorted(os.listdir('.'))]))";
    let pristine = client.run(python(look))["stdout"].clone();
    assert_eq!(
        pristine,
        "[\"/workspace\", null, false, true, 1, [], [\".home\", \"main.py\"]]\n"
    );
    for _ in 0..12 {
        assert_eq!(client.run(python(pollute))["stdout"], "polluted\n");
        assert_eq!(client.run(python(look))["stdout"], pristine);
    }
    unharmed(client);
}

fn python(code: &str) -> Value {
    json!({ "code": code, "language": "python" })
}

fn stdin_is_not_the_protocol() {
    let mut client = stdio(&[]);
    let code = program("LEK-03");
    let later = client.begin_call("run", python("print('later')"));
    let first = client.begin_call("run", python(&code));
    // More of the protocol, while a program reads its input.
    client.ping();
    for (id, stdin) in [(first, None), (later, Some("later\n"))] {
        let answer = client.answer(&id);
        let text = answer["result"]["structuredContent"]["stdout"].clone();
        match stdin {
            Some(expected) => assert_eq!(text, expected),
            None => {
                let text = text.as_str().expect("text");
                assert!(text.starts_with("SAFE 0\n0 /dev/null\n1 pipe:"), "{text}");
            }
        }
    }
    let record = client.run(json!({ "code": code, "language": "python", "stdin": "mine" }));
    let text = record["stdout"].as_str().expect("text");
    assert!(text.starts_with("SAFE 4\n0 pipe:"), "{text}");
    unharmed(client);
}

fn secrets_on_command_lines_and_in_errors() {
    let token = format!("sbx-canary-argv-{}", fresh_word());
    let mut server = Http::start_as(&["--http", "127.0.0.1:0"], |command, _| {
        command
            .env("HOTCELL_TOKEN", &token)
            .env("SBX_CANARY_SECRET", super::secret());
    });
    server.token = Some(token.clone());
    let look = "import glob, subprocess\n\
        for name in glob.glob('/proc/*/cmdline') + glob.glob('/proc/*/environ'):\n    \
            try: print(name, open(name, 'rb').read())\n    \
            except OSError as error: print(name, error)\n\
        print(subprocess.run('ps aux; env; cat /proc/mounts', shell=True, capture_output=True))";
    let mut calls = vec![python(look)];
    calls.extend(
        [
            "def f(:",
            "import nosuch",
            "raise ValueError",
            "input()",
            "import os; os.abort()",
            "exit(9)",
            "x = bytearray(10**10)",
        ]
        .map(python),
    );
    calls.extend(
        ["cobol", "", "python\u{0}", "../x"]
            .map(|language| json!({ "code": "1", "language": language })),
    );
    calls.extend([
        json!({ "code": "while True: pass", "language": "python", "timeout": 0.5 }),
        json!({ "code": 5 }),
        json!({ "code": "1" }),
        json!({ "code": "1", "language": "python", "args": [1, {}] }),
        json!({ "code": "1", "language": "python", "files": { "../x": "" } }),
        json!({ "code": "1", "language": "python", "files": { "a": { "uri": "run://x/stdout" } } }),
        json!({ "code": "exec 3< /proc/self/fd/63", "language": "bash" }),
        json!({ "code": "kill -9 1; kill -9 -1", "language": "bash" }),
    ]);
    let home = server.server.home.path().display().to_string();
    for arguments in calls {
        let answer = server.post(&crate::raw::http::call("run", arguments.clone()));
        clean(&answer, &[&token, super::secret(), &home], &arguments);
    }
    for (line, body) in [
        ("POST /mcp HTTP/1.1", "{"),
        (
            "POST /mcp HTTP/1.1",
            r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#,
        ),
        ("GET /mcp HTTP/1.1", ""),
        ("GET /nothing HTTP/1.1", ""),
    ] {
        let answer = server.ask(line, &server.usual(), body.as_bytes());
        clean(&answer, &[&token, super::secret(), &home], &json!(line));
    }
    let wrong = server.ask(
        "POST /mcp HTTP/1.1",
        &server.without("authorization"),
        b"{}",
    );
    clean(&wrong, &[&token], &json!("no token"));
    let log = server.server.log();
    // Not at the start either, since its owner has it already.
    assert!(!log.contains(&token), "{log}");
    still_serves(&server);
}

fn clean(answer: &Answer, words: &[&str], asked: &Value) {
    let text = answer.text();
    let binary = env!("CARGO_BIN_EXE_hotcell");
    let ours = ["panicked", "RUST_BACKTRACE", ".rs:", binary];
    for word in words.iter().chain(&ours) {
        assert!(
            !text.contains(word),
            "{word} is in the answer to {asked}: {text}"
        );
    }
}

fn leftovers_of_a_run() {
    let mut client = stdio(&[]);
    let word = fresh_word();
    let places = "/tmp /var/tmp /dev/shm $HOME .";
    let plant = format!(
        "for p in {places}; do echo {word} > $p/{word} && echo planted $p; done; echo {word} >> ~/.bashrc; :"
    );
    let record = client.run(json!({ "code": plant, "language": "bash" }));
    // Control: it could write, so that there was something to find.
    let planted = record["stdout"].as_str().expect("text");
    assert!(
        planted.contains("planted /tmp\n") && planted.contains("planted ."),
        "{record}"
    );
    let look = format!(
        "cat {}/{word} ~/.bashrc",
        places.replace(' ', &format!("/{word} "))
    );
    let record = client.run(json!({ "code": look, "language": "bash" }));
    assert_eq!(record["stdout"], "", "{record}");
    let host = ["/tmp", "/var/tmp", "/dev/shm"].map(|place| format!("{place}/{word}"));
    assert!(host.iter().all(|path| !std::path::Path::new(path).exists()));
    unharmed(client);
}

fn another_principals_things() {
    let (ours, theirs) = (over_http(), over_http());
    let theirs_token = theirs.token.clone().expect("a token");
    // A token of another server is any wrong token.
    let refused = |token: &str| {
        let headers = [
            ours.without("authorization"),
            vec![format!("Authorization: Bearer {token}")],
        ];
        let answer = ours.ask("POST /mcp HTTP/1.1", &headers.concat(), b"{}");
        (answer.status, answer.text(), names(&answer))
    };
    assert_eq!(refused(&theirs_token), refused(&fresh_word()));
    assert_eq!(refused(&theirs_token).0, 401);
    // A session of another is a session that is not there.
    let session = open_session(&theirs);
    let asked = |id: &str, method: &str| {
        let headers = [ours.usual(), vec![format!("Mcp-Session-Id: {id}")]].concat();
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let body = if method == "POST" { body } else { "" };
        let answer = ours.ask(
            &format!("{method} /mcp HTTP/1.1"),
            &headers,
            body.as_bytes(),
        );
        (answer.status, answer.text(), names(&answer))
    };
    let other = fresh_word()[1..].to_owned();
    for method in ["POST", "DELETE", "GET"] {
        assert_eq!(asked(&session, method), asked(&other, method));
    }
    assert_eq!(asked(&session, "POST").0, 404);
    // An output of another is an output that is not there.
    let result = theirs.call("run", python("print('secret ' * 100_000)"));
    let text = result["structuredContent"]["stdout"]
        .as_str()
        .expect("text");
    let at = text.find("run://").expect("its output is kept");
    let uri = text[at..]
        .split(' ')
        .next()
        .expect("its address")
        .to_owned();
    let read = |server: &Http, uri: &str| {
        let params = json!({ "uri": uri });
        server.post(
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params }),
        )
    };
    // Control: its owner can read it.
    assert!(read(&theirs, &uri).text().contains("secret secret"));
    let invented = format!("run://{other}/stdout");
    let (found, unknown) = (read(&ours, &uri), read(&ours, &invented));
    assert_eq!(code(&found.message()), -32602);
    assert_eq!(
        found.text().replace(&uri, ""),
        unknown.text().replace(&invented, "")
    );
    still_serves(&ours);
    still_serves(&theirs);
}

/// The names of an answer's headers: their values may hold the time.
fn names(answer: &Answer) -> Vec<String> {
    answer
        .headers
        .iter()
        .map(|(name, _)| name.clone())
        .collect()
}

/// Opens a session of the legacy era and gives its id.
pub fn open_session(server: &Http) -> String {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let answer = server.post(&hello);
    let id = answer.header("mcp-session-id");
    id.expect("a session").to_owned()
}

fn background_process() {
    let mut client = stdio(&[]);
    let word = fresh_word();
    let code = format!(
        "(setsid bash -c 'exec 0<&- 1>&- 2>&-; while :; do echo evil > main.sh; \
         for p in /proc/[0-9]*; do echo evil > $p/fd/1; kill -STOP ${{p#/proc/}}; done; sleep 0.05; done' {word} \
         </dev/null >/dev/null 2>&1 &) ; sleep 0.3; echo first"
    );
    let record = client.run(json!({ "code": code, "language": "bash", "timeout": 5 }));
    assert!(record["duration_ms"].as_f64().is_some(), "{record}");
    // Killed before the answer; the kernel needs a moment to take it off its list.
    let gone = wait_until(PATIENCE, || processes_with(&word).is_empty());
    assert!(gone.is_some(), "it outlives its run");
    let record = client.run(json!({ "code": "echo second", "language": "bash" }));
    assert_eq!(record["stdout"], "second\n");
    assert_eq!(record["stderr"], "");
    unharmed(client);
}

fn session_ids() {
    let server = over_http();
    let count = if long() { 2000 } else { 300 };
    let ids: Vec<String> = (0..count).map(|_| open_session(&server)).collect();
    unpredictable(&ids);
    let existing = &ids[0];
    let upper = existing.to_ascii_uppercase();
    let long_id = "A".repeat(4096);
    for invented in [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        &long_id,
        "%2e%2e",
        "\u{430}\u{431}",
        &upper,
        &existing[1..],
    ] {
        if invented == existing {
            continue;
        }
        let headers = [server.usual(), vec![format!("Mcp-Session-Id: {invented}")]].concat();
        let body = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let answer = server.ask("POST /mcp HTTP/1.1", &headers, body);
        assert_eq!(answer.status, 404, "{invented:?}");
    }
    // No run can be asked to be in a session of somebody's choice.
    let result = server.call(
        "run",
        json!({ "code": "1", "language": "python", "session": "../x" }),
    );
    assert_eq!(result["structuredContent"]["status"], "rejected");
    still_serves(&server);
}

/// Ids are visible ASCII, all different, and no place in them stays or counts up.
pub fn unpredictable(ids: &[String]) {
    let different: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(different.len(), ids.len());
    let length = ids[0].len();
    // 22 letters of a base of 64 are 132 bits, 32 of a base of 16 are 128.
    assert!(length >= 22, "{}", ids[0]);
    for id in ids {
        assert_eq!(id.len(), length);
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()));
    }
    for at in 0..length {
        let letters: BTreeSet<u8> = ids.iter().map(|id| id.as_bytes()[at]).collect();
        assert!(
            letters.len() >= 8,
            "place {at} has {} values",
            letters.len()
        );
    }
    assert!(!ids.is_sorted());
}
