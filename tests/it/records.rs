//! What is recorded of runs: who sees it, what never gets into it, and what a server that was killed leaves of it.

mod killed;
mod replay;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::mcp::client::Client;
use crate::packages::registry::{Registry, wheel};
use crate::packages::{OLD, command, installer};
use crate::raw::fresh_word;
use crate::raw::http::Http;
use crate::support::{Answer, Hotcell, PATIENCE, Running, anyone, eventually, everyone, has};

/// A server of this user, with these flags.
fn serve(hotcell: &Hotcell, flags: &[&str]) -> Client {
    let mut command = hotcell.command();
    command.arg("serve").args(flags);
    let mut client = Client::of(command);
    client.begin();
    client
}

/// A command of `hotcell` to its end.
fn hotcell_with(hotcell: &Hotcell, arguments: &[&str]) -> Answer {
    Running::start(hotcell.command().args(arguments)).finish()
}

/// All that `hotcell logs` lists.
fn logs(hotcell: &Hotcell) -> Vec<Value> {
    let answer = hotcell_with(hotcell, &["logs", "--json", "-n", "100000"]);
    let out = answer.out();
    let lines = out.lines().map(serde_json::from_str);
    lines.map(|line| line.expect("JSON")).collect()
}

/// One run whole.
fn whole(hotcell: &Hotcell, id: &Value) -> Value {
    let id = id.as_str().expect("an id");
    hotcell_with(hotcell, &["logs", "--json", id]).json()
}

fn folder(hotcell: &Hotcell) -> PathBuf {
    hotcell.home().join(".local/state/hotcell/records")
}

/// Every byte that is recorded.
fn everything(hotcell: &Hotcell) -> Vec<u8> {
    let entries = fs::read_dir(folder(hotcell)).expect("records");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let files = paths.filter(|path| path.is_file());
    let files = files.map(|path| fs::read(path).expect("a file"));
    files.collect::<Vec<_>>().concat()
}

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|it| it == word.as_bytes())
}

/// Waits until a run with this word in its program is recorded.
fn recorded(hotcell: &Hotcell, word: &str) -> Value {
    let mut found = None;
    eventually(PATIENCE, || {
        let ids = logs(hotcell).into_iter().map(|run| run["id"].clone());
        let mut all = ids.map(|id| whole(hotcell, &id));
        found = all.find(|run| run["code"].as_str().is_some_and(|code| code.contains(word)));
        found.is_some()
    });
    found.unwrap_or_else(|| panic!("no record of {word}"))
}

#[test]
fn what_was_run_is_listed_and_shown_whole() {
    for hotcell in everyone() {
        let answer = hotcell.run(&[
            "-l",
            "sh",
            "-c",
            "echo by hand; exit 3",
            "--",
            "an argument",
        ]);
        assert_eq!(answer.code, Some(3));
        let mut client = serve(&hotcell, &[]);
        let files = json!({ "in.txt": "given" });
        let code = "cat in.txt; echo left > out.txt; echo wrong >&2";
        let result = client.run(json!({ "code": code, "language": "sh", "files": files }));
        assert_eq!(result["structuredContent"]["status"], "ok", "{result}");
        let id = result["_meta"]["dev.hotcell/run"]["id"].clone();
        client.close();

        let listed = logs(&hotcell);
        let statuses: Vec<&Value> = listed.iter().map(|run| &run["status"]).collect();
        assert_eq!(statuses, ["failed", "ok"], "{}: {listed:?}", hotcell.name);
        let by_hand = whole(&hotcell, &listed[0]["id"]);
        assert_eq!(by_hand["stdout"], "by hand\n");
        assert_eq!(by_hand["request"]["args"], json!(["an argument"]));
        assert_eq!(by_hand["result"]["exit_code"], 3);
        let served = whole(&hotcell, &id);
        assert_eq!(
            (&served["code"], &served["stdout"], &served["stderr"]),
            (&json!(code), &json!("given"), &json!("wrong\n"))
        );
        assert_eq!(served["request"]["limits"]["memory"], 512 << 20);
        assert_eq!(
            served["result"]["isolation"]["level"],
            by_hand["result"]["isolation"]["level"]
        );
        for file in [
            &served["request"]["files"][0],
            &served["result"]["files"][0],
        ] {
            assert_eq!(file["sha256"].as_str().map(str::len), Some(64), "{served}");
        }
        // A person may write the beginning of an id.
        let id = id.as_str().unwrap();
        let shown = hotcell_with(&hotcell, &["logs", &id[..10]]).out();
        assert!(
            shown.contains(code) && shown.contains("--- stderr\nwrong\n"),
            "{shown}"
        );
        let unknown = hotcell_with(&hotcell, &["logs", "nothing"]);
        assert_eq!(unknown.code, Some(2), "{}", unknown.err());
    }
}

#[test]
fn nothing_is_recorded_for_an_owner_who_wants_nothing() {
    let Some(hotcell) = anyone() else { return };
    let run = ["-l", "sh", "-c", "echo 1"];
    assert_eq!(
        hotcell.run(&[&run[..], &["--no-record"]].concat()).code,
        Some(0)
    );
    let mut client = serve(&hotcell, &["--no-record"]);
    client.run(json!({ "code": "echo 1", "language": "sh" }));
    client.close();
    hotcell.write(
        "home/.config/hotcell/config.toml",
        "[records]\nenabled = false\n",
    );
    assert_eq!(hotcell.run(&run).code, Some(0));
    let mut client = serve(&hotcell, &[]);
    client.run(json!({ "code": "echo 1", "language": "sh" }));
    client.close();
    assert!(!folder(&hotcell).exists());
    let none = hotcell_with(&hotcell, &["logs"]);
    assert_eq!(none.code, Some(1));
    assert!(none.err().contains("no records"), "{}", none.err());
    // Control: one who says nothing has records.
    hotcell.write("home/.config/hotcell/config.toml", "");
    assert_eq!(hotcell.run(&run).code, Some(0));
    assert_eq!(logs(&hotcell).len(), 1);
}

#[test]
fn a_secret_is_never_recorded() {
    let Some(hotcell) = anyone() else { return };
    let (variable, secret, control) = (fresh_word(), fresh_word(), fresh_word());
    let config = "[[secret]]\nname = 'API_KEY'\nhosts = ['api.example.com']\nenv = 'OWN_KEY'\n";
    hotcell.write("home/.config/hotcell/config.toml", config);
    let code = format!("echo {secret} {control} $GIVEN");
    let mut command = hotcell.command();
    command
        .env("OWN_KEY", &secret)
        .args(["run", "-l", "sh", "-c", &code, "--env"])
        .arg(format!("GIVEN={variable}"))
        .args(["--", &secret]);
    let answer = Running::start(&mut command).finish();
    assert!(
        answer.out().contains(&secret),
        "it is in what the caller sent"
    );
    let mut command = hotcell.command();
    command.env("OWN_KEY", &secret).arg("serve");
    let mut client = Client::of(command);
    client.begin();
    client.run(json!({ "code": code, "language": "sh", "stdin": secret, "args": [secret], "files": { "a": secret } }));
    client.close();
    assert_eq!(logs(&hotcell).len(), 2);
    let bytes = everything(&hotcell);
    assert!(holds(&bytes, &control) && holds(&bytes, "[secret API_KEY]"));
    assert!(
        !holds(&bytes, &secret),
        "the value of a secret was recorded"
    );
    // The program printed the variable's value, which is what it did; the request's own is not there.
    let run = whole(&hotcell, &logs(&hotcell)[0]["id"]);
    assert_eq!(run["request"]["variables"], json!(["GIVEN"]));
    assert!(!run["request"].to_string().contains(&variable));
}

#[test]
fn a_caller_finds_its_own_records_and_nobody_elses() {
    let Some(hotcell) = anyone() else { return };
    let state = hotcell.make_folder("shared");
    let http = Http::start_as(&["--http", "127.0.0.1:0"], |command, _| {
        command.env("XDG_STATE_HOME", &state);
    });
    let arguments = json!({ "code": "echo 1 > a.csv", "language": "sh" });
    let result = http.call("run", arguments);
    let id = result["_meta"]["dev.hotcell/run"]["id"].clone();
    let uri = result["structuredContent"]["files"][0]["uri"].clone();
    assert!(uri.is_string(), "{result}");
    // Whoever asks for a record waits until it is written.
    let known = http.call("session", json!({ "job": id }));
    assert_eq!(known["structuredContent"]["status"], "ok", "{known}");
    let token = http.token.clone();
    drop(http);
    let mut again = Http::start_as(&["--http", "127.0.0.1:0"], |command, _| {
        command.env("XDG_STATE_HOME", &state);
    });
    // It was shown when it was made, and is the same.
    again.token = token;
    let found = again.call("session", json!({ "job": id }));
    let found = found["structuredContent"]["status"].clone();
    let read =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": { "uri": uri } });
    let own = again.post(&read).message();
    let mut command = hotcell.command();
    command.env("XDG_STATE_HOME", &state).arg("serve");
    let mut other = Client::of(command);
    other.begin();
    let params = json!({ "name": "session", "arguments": { "job": id } });
    let refused = other.request("tools/call", params)["result"].clone();
    assert_eq!(refused["isError"], true, "{refused}");
    let unread = other.request("resources/read", json!({ "uri": uri }));
    assert!(unread.get("error").is_some(), "{unread}");
    assert_eq!(found, "ok");
    assert_eq!(own["result"]["contents"][0]["text"], "1\n", "{own}");
}

#[test]
fn a_terminal_is_not_told_what_a_program_chose() {
    let Some(hotcell) = anyone() else { return };
    let code = "printf '\\033[2J\\033]0;owned\\007 plain'";
    let answer = hotcell.run(&["-l", "sh", "-c", code]);
    assert!(answer.stdout.contains(&0x1b), "control: it prints them");
    let id = logs(&hotcell)[0]["id"].clone();
    let shown = hotcell_with(&hotcell, &["logs", id.as_str().unwrap()]);
    assert!(shown.out().contains(" plain"));
    assert!(!shown.stdout.contains(&0x1b), "{}", shown.out());
    assert!(!hotcell_with(&hotcell, &["logs"]).stdout.contains(&0x1b));
}

#[test]
fn who_follows_sees_runs_as_they_are_recorded() {
    let Some(hotcell) = anyone() else { return };
    hotcell.run(&["-l", "sh", "-c", "echo first"]);
    let mut following = Running::start(hotcell.command().args(["logs", "--follow"]));
    following.stdout.until("echo first");
    hotcell.run(&["-l", "sh", "-c", "echo second"]);
    following.stdout.until("echo second");
}

#[test]
fn the_lock_of_packages_is_there_for_who_asks_later() {
    if !has("python3") || installer().is_none() {
        return;
    }
    let Some(hotcell) = anyone() else { return };
    let registry = Registry::start();
    let files = [("tinything/__init__.py", "VERSION = '1.0'\n")];
    registry.add(
        "tinything",
        "1.0",
        OLD,
        &wheel("tinything", "1.0", &files, &[]),
    );
    let mut server = command(&hotcell, &registry, installer());
    server.arg("serve");
    let mut client = Client::of(server);
    client.begin();
    let arguments = json!({ "code": "import tinything", "language": "python" });
    let first = client.run(arguments.clone());
    let lock = first["structuredContent"]["packages"]["lock"].clone();
    assert!(lock.is_string(), "{first}");
    let second = client.run(arguments);
    assert_eq!(
        second["structuredContent"].get("packages"),
        None,
        "{second}"
    );
    let id = second["_meta"]["dev.hotcell/run"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let uri = format!("run://{id}/lock");
    let read = client.request("resources/read", json!({ "uri": uri }));
    assert_eq!(read["result"]["contents"][0]["text"], lock, "{read}");
    let shown = hotcell_with(&hotcell, &["logs", &id, "--lock"]);
    assert_eq!(Value::from(shown.out()), lock);
    // A run with packages has exactly those again.
    let mut again = command(&hotcell, &registry, installer());
    let again = Running::start(again.args(["replay", &id])).finish();
    assert_eq!(
        again.whole(),
        (Some(0), "nothing differs\n".to_owned(), String::new())
    );
    // Control: a run without packages has none.
    let plain = client.run(json!({ "code": "1", "language": "python" }));
    let id = plain["_meta"]["dev.hotcell/run"]["id"].as_str().unwrap();
    let read = client.request(
        "resources/read",
        json!({ "uri": format!("run://{id}/lock") }),
    );
    assert!(read.get("error").is_some(), "{read}");
}
