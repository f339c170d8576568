//! Files that a program leaves, on the command line and over MCP.

use std::fs;

use serde_json::{Value, json};

use crate::mcp::client::Client;
use crate::support::{every_provider, everyone};

fn read(client: &mut Client, uri: &Value) -> Value {
    let answer = client.request("resources/read", json!({ "uri": uri }));
    answer["result"]["contents"][0].clone()
}

#[test]
fn what_a_program_leaves_new_or_changed_comes_back_and_is_input_for_the_next() {
    let mut client = Client::open(&[]);
    let result = client.run(json!({
        "language": "python",
        "code": "import os\nos.mkdir('out')\nopen('out/a b.csv', 'w').write('x,y\\n1,2\\n')\n\
                 open('old.txt', 'a').write('more')\nopen('raw', 'wb').write(bytes([0, 255]))",
        "files": { "old.txt": "some ", "same.txt": "as it was", "in/deep/same.txt": "too" },
    }));
    assert_eq!(result["isError"], false, "{result}");
    let files = result["structuredContent"]["files"].as_array().unwrap();
    let facts = |file: &Value| {
        let facts = ["name", "size", "type"].map(|key| file[key].clone());
        Value::from(facts.to_vec())
    };
    let facts: Vec<Value> = files.iter().map(facts).collect();
    assert_eq!(
        facts,
        [
            json!(["old.txt", 9, "text/plain"]),
            json!(["raw", 2, "application/octet-stream"]),
            json!(["out/a b.csv", 8, "text/csv"]),
        ]
    );
    let sum = "5a7d4ecc6b1cbd08e4d59ebcbb5fc66d56c9b4cb6ee1cbc7e6c3d0cf0e2be9a2";
    assert_eq!(files[2]["sha256"].as_str().map(str::len), Some(sum.len()));
    let links: Vec<&Value> = result["content"].as_array().unwrap()[1..].iter().collect();
    for (file, link) in files.iter().zip(&links) {
        assert_eq!(link["type"], "resource_link");
        assert_eq!((&link["uri"], &link["size"]), (&file["uri"], &file["size"]));
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(file["uri"].as_str().unwrap()), "{text}");
    }
    assert_eq!(read(&mut client, &files[0]["uri"])["text"], "some more");
    assert_eq!(read(&mut client, &files[1]["uri"])["blob"], "AP8=");
    let csv = read(&mut client, &files[2]["uri"]);
    assert_eq!(
        (&csv["text"], &csv["mimeType"]),
        (&json!("x,y\n1,2\n"), &json!("text/csv"))
    );
    let range = format!("{}?lines=2", files[2]["uri"].as_str().unwrap());
    assert_eq!(read(&mut client, &range.into())["text"], "1,2\n");

    let next = client.run(json!({
        "language": "sh",
        "code": "cat data/x.csv",
        "files": { "data/x.csv": { "uri": files[2]["uri"] } },
    }));
    assert_eq!(
        next["structuredContent"],
        json!({ "status": "ok", "stdout": "x,y\n1,2\n" })
    );
}

#[test]
fn a_program_that_fails_leaves_its_files_too() {
    let mut client = Client::open(&[]);
    for (code, timeout, status) in [
        ("echo kept >log.txt; exit 3", 20, "failed"),
        ("echo kept >log.txt; sleep 60", 1, "timeout"),
    ] {
        let result = client.run(json!({ "language": "sh", "code": code, "timeout": timeout }));
        let facts = &result["structuredContent"];
        assert_eq!(facts["status"], status);
        let file = &facts["files"][0];
        assert_eq!(file["name"], "log.txt", "{facts}");
        assert_eq!(read(&mut client, &file["uri"])["text"], "kept\n");
    }
}

#[test]
fn what_a_runtime_or_a_compiler_leaves_is_not_the_programs() {
    let mut client = Client::open(&[]);
    for (language, code) in [
        (
            "python",
            "import mod, os\nos.makedirs(os.path.expanduser('~/.cache/x'))\nopen(os.path.expanduser('~/.cache/x/y'), 'w')",
        ),
        ("c", "int main(void) { return 0; }"),
    ] {
        let result = client
            .run(json!({ "language": language, "code": code, "files": { "mod.py": "x = 1" } }));
        let facts = &result["structuredContent"];
        assert_eq!(
            (&facts["status"], facts.get("files")),
            (&json!("ok"), None),
            "{facts}"
        );
    }
}

#[test]
fn another_caller_finds_no_file_of_a_run() {
    let mut owner = Client::open(&[]);
    let mut other = Client::open(&[]);
    let result = owner.run(json!({ "language": "sh", "code": "echo x >file" }));
    let uri = result["structuredContent"]["files"][0]["uri"].clone();
    assert_eq!(read(&mut owner, &uri)["text"], "x\n");
    let refused = other.request("resources/read", json!({ "uri": uri }));
    assert_eq!(refused["error"]["code"], -32602);
    let files = json!({ "file": { "uri": uri } });
    let refused = other.run(json!({ "language": "sh", "code": "cat file", "files": files }));
    assert_eq!(refused["structuredContent"]["status"], "rejected");
}

#[test]
fn out_writes_them_to_a_folder_and_without_it_one_line_says_what_was_left() {
    let code =
        "mkdir d; echo one >d/a.txt; echo two >b.txt; printf '#!/bin/sh\\n' >run; chmod 4777 run";
    for hotcell in every_provider() {
        let folder = hotcell.place("home/results/deep");
        let folder = folder.to_str().unwrap();
        for _ in 0..2 {
            let answer = hotcell.run(&["-l", "sh", "-c", code, "--out", folder]);
            assert_eq!(answer.whole(), (Some(0), String::new(), String::new()));
        }
        let at = |name: &str| hotcell.place("home/results/deep").join(name);
        assert_eq!(fs::read_to_string(at("d/a.txt")).unwrap(), "one\n");
        assert_eq!(fs::read_to_string(at("b.txt")).unwrap(), "two\n");
        let mode = fs::metadata(at("run")).unwrap().permissions();
        let mode = std::os::unix::fs::PermissionsExt::mode(&mode);
        assert_eq!(mode & 0o6111, 0o111, "executable, and no more than that");

        let answer = hotcell.run(&["-l", "sh", "-c", code]);
        assert_eq!((answer.code, answer.out()), (Some(0), String::new()));
        assert_eq!(
            answer.err(),
            "hotcell: left behind: b.txt (4 bytes), run (10 bytes), d/a.txt (4 bytes); \
             `--out DIR` writes such files to a folder\n"
        );
    }
}

#[test]
fn no_link_in_the_folder_leads_what_a_program_leaves_elsewhere() {
    for hotcell in everyone() {
        hotcell.write("home/elsewhere/kept.txt", "as it was");
        let (out, elsewhere) = (
            hotcell.make_folder("home/out"),
            hotcell.place("home/elsewhere"),
        );
        std::os::unix::fs::symlink(&elsewhere, out.join("d")).unwrap();
        std::os::unix::fs::symlink(elsewhere.join("kept.txt"), out.join("f")).unwrap();
        let out = out.to_str().unwrap();
        let answer = hotcell.run(&["-l", "sh", "-c", "echo new >f", "--out", out]);
        assert_eq!(answer.code, Some(0), "{}", answer.err());
        assert_eq!(
            fs::read_to_string(hotcell.place("home/out/f")).unwrap(),
            "new\n"
        );
        let answer = hotcell.run(&[
            "-l",
            "sh",
            "-c",
            "mkdir d; echo new >d/kept.txt",
            "--out",
            out,
        ]);
        assert_eq!(answer.code, Some(125), "{}", answer.err());
        let kept = fs::read_to_string(elsewhere.join("kept.txt")).unwrap();
        assert_eq!(kept, "as it was");
    }
}

#[test]
fn a_folder_that_is_placed_keeps_its_layout_and_only_what_changes_in_it_comes_back() {
    for hotcell in everyone() {
        hotcell.write("home/data/a/one.txt", "1");
        hotcell.write("home/data/b/two.txt", "2");
        let data = hotcell.place("home/data");
        let code = "cat data/a/one.txt data/b/two.txt; echo 3 >data/b/two.txt";
        let result = hotcell.json(&["-l", "sh", "-c", code, "--file", data.to_str().unwrap()]);
        assert_eq!(result["stdout"], "12");
        let names = result["files"].as_array().unwrap().iter();
        let names: Vec<&Value> = names.map(|file| &file["name"]).collect();
        assert_eq!(names, ["data/b/two.txt"]);
    }
}
