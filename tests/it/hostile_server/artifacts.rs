//! The cases of the category `artifact`: files that a program leaves, and names that ask for others.

use serde_json::{Value, json};

use super::{Case, program, stdio, unharmed};
use crate::raw::Stdio;

pub const CASES: &[Case] = &[
    ("ART-01", names_that_lead_elsewhere),
    ("ART-02", links),
    ("ART-03", a_file_that_becomes_a_link),
    ("ART-04", what_is_no_file),
    ("ART-05", sparse_and_huge_files),
    ("ART-06", too_many_files),
    ("ART-07", a_file_that_grows),
    ("ART-08", hostile_names),
    ("ART-12", hostile_metadata),
];

/// What a case's program leaves.
fn left(client: &mut Stdio, id: &str, language: &str) -> (Value, Vec<Value>) {
    let record = client.run(json!({ "code": program(id), "language": language, "timeout": 30 }));
    assert_eq!(record["status"], "ok", "{record}");
    let files = record["files"].as_array().cloned().unwrap_or_default();
    (record, files)
}

fn read(client: &mut Stdio, uri: &Value) -> Value {
    let answer = client.request("resources/read", json!({ "uri": uri }));
    match answer.get("error") {
        Some(error) => error.clone(),
        None => answer["result"]["contents"][0].clone(),
    }
}

fn names_that_lead_elsewhere() {
    let mut client = stdio(&[]);
    let record = client.run(json!({ "code": "echo mine >x", "language": "sh" }));
    let uri = record["files"][0]["uri"]
        .as_str()
        .expect("it is stored")
        .to_owned();
    assert_eq!(read(&mut client, &json!(uri))["text"], "mine\n");
    let run = uri.strip_suffix("/files/x").expect("its address");
    let long = ["a".repeat(5000), "x/".repeat(2000) + "y"];
    let paths = [
        "../../../etc/passwd",
        "/etc/passwd",
        "a/../../x",
        "..\\..\\x",
        "%2e%2e/x",
        "....//x",
        "%00",
        "/proc/self/environ",
        "~/x",
        "$HOME/x",
        "C:\\x",
        ".",
        "",
        "./x",
    ];
    for path in paths.into_iter().chain(long.iter().map(String::as_str)) {
        let error = read(&mut client, &json!(format!("{run}/files/{path}")));
        assert_eq!(error["code"], -32602, "{path}: {error}");
        let files = json!({ "in": { "uri": format!("{run}/files/{path}") } });
        let refused = client.run(json!({ "code": "x", "language": "sh", "files": files }));
        assert_eq!(refused["status"], "rejected", "{path}");
    }
    for path in ["../x", "/etc/x", "a/../../x", "\0", "", ".", &long[0]] {
        let refused =
            client.run(json!({ "code": "x", "language": "sh", "files": { path: "text" } }));
        assert_eq!(refused["status"], "rejected", "{path:?}");
    }
    for uri in [
        "file:///etc/passwd",
        "run://../files/x",
        "sandbox://other/x",
    ] {
        assert_eq!(read(&mut client, &json!(uri))["code"], -32602, "{uri}");
    }
    unharmed(client);
}

fn links() {
    let mut client = stdio(&[]);
    let (record, files) = left(&mut client, "ART-02", "bash");
    assert_eq!((&record["stdout"], files.len()), (&json!("done\n"), 0));
    unharmed(client);
}

fn a_file_that_becomes_a_link() {
    let mut client = stdio(&[]);
    let (_, files) = left(&mut client, "ART-03", "python");
    assert!(!files.is_empty());
    for file in files {
        assert_eq!(read(&mut client, &file["uri"])["text"], "ok", "{file}");
    }
    unharmed(client);
}

fn what_is_no_file() {
    let mut client = stdio(&[]);
    let (record, files) = left(&mut client, "ART-04", "bash");
    assert_eq!((&record["stdout"], files.len()), (&json!("done\n"), 0));
    unharmed(client);
}

fn sparse_and_huge_files() {
    let mut client = stdio(&[]);
    // Control: one that may be brought back is.
    let code = "truncate -s 1M a.bin; truncate -s 200M b.bin; truncate -s 100M c.bin";
    let record = client.run(json!({ "code": code, "language": "sh" }));
    let files = record["files"].as_array().expect("both are named");
    let facts = files
        .iter()
        .map(|it| (it["size"].as_u64(), it["uri"].is_string()));
    let size = |mebibytes: u64| Some(mebibytes << 20);
    let expected = [(size(1), true), (size(200), true), (size(100), false)];
    assert_eq!(facts.collect::<Vec<_>>(), expected, "{record}");
    let resident = client.server.memory("VmRSS");
    let (_, files) = left(&mut client, "ART-05", "bash");
    // The limit of one file's size stops the case's own; what is left of them is empty.
    assert!(files.iter().all(|file| file["size"] == 0), "{files:?}");
    let grown = client.server.memory("VmRSS").saturating_sub(resident);
    assert!(grown < 32 << 10, "{grown} KiB more");
    unharmed(client);
}

fn too_many_files() {
    let mut client = stdio(&[]);
    let (record, files) = left(&mut client, "ART-06", "bash");
    assert_eq!(files.len(), 200);
    let notes = record["notes"].to_string();
    assert!(notes.contains("more of the files"), "{notes}");
    unharmed(client);
}

fn a_file_that_grows() {
    let mut client = stdio(&[]);
    let (record, files) = left(&mut client, "ART-07", "python");
    assert_eq!((&record["stdout"], files.len()), (&json!("done\n"), 1));
    unharmed(client);
}

fn hostile_names() {
    let mut client = stdio(&[]);
    let (record, files) = left(&mut client, "ART-08", "python");
    // One name is no text; the last is cut to one that is there.
    assert_eq!(files.len(), 14, "{record}");
    for file in files {
        assert_eq!(read(&mut client, &file["uri"])["text"], "x", "{file}");
    }
    unharmed(client);
}

fn hostile_metadata() {
    let mut client = stdio(&[]);
    let (_, files) = left(&mut client, "ART-12", "python");
    assert_eq!(read(&mut client, &files[0]["uri"])["text"], "sbx");
    unharmed(client);
}
