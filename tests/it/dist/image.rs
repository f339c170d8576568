//! The image with a file system below it: what docs/release.md says of it, done by Podman.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::roots::Loaded;
use super::{ROOT, VERSION, packages, succeed};
use crate::mcp::client::{Client, hello};
use crate::raw::http::call;
use crate::support::{has, has_heavy, skip};

const PROGRAMS: [(&str, &str, &str); 5] = [
    ("javascript", "node", "console.log(6 * 7)"),
    ("python", "python3", "print(6 * 7)"),
    (
        "go",
        "go",
        "package main\nimport \"fmt\"\nfunc main() { fmt.Println(6 * 7) }",
    ),
    ("php", "php", "<?php echo 6 * 7, \"\\n\";"),
    ("ruby", "ruby", "puts 6 * 7"),
];

/// The command of the page that makes the file system; none if Debian's packages cannot be had.
fn made_base(file: &str) -> Option<()> {
    let page = fs::read_to_string(format!("{ROOT}/docs/release.md")).unwrap();
    let mut lines = page.lines().map(str::trim);
    let line = lines.find(|line| line.starts_with("mmdebstrap "));
    let words = line.expect("the page says how").replace("base.tar", file);
    let words: Vec<&str> = words.split(' ').collect();
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        skip(&format!("no file system below the image: {said}"));
        return None;
    }
    Some(())
}

#[test]
fn the_image_with_runtimes_below_it_runs_five_languages_over_stdio_and_http() {
    if !has("mmdebstrap") || !has_heavy("podman") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base.tar").display().to_string();
    let Some(()) = made_base(&base) else { return };
    succeed(
        Command::new("python3")
            .args([&format!("{ROOT}/scripts/dist"), "oci", "--base", &base])
            .env("HOTCELL", packages().join("hotcell"))
            .env("OUT", folder.path()),
    );
    fs::remove_file(&base).unwrap();
    let files = fs::read_dir(folder.path()).unwrap().flatten();
    let mut files = files.map(|file| file.path().display().to_string());
    let image = files.find(|file| file.ends_with(".oci.tar")).unwrap();
    let Some(loaded) = Loaded::of(&image) else {
        return;
    };

    let mut client = Client::of(loaded.podman(&["-i", "--network=none"], &[]));
    let said = client.request("initialize", hello("2025-11-25"));
    assert_eq!(said["result"]["serverInfo"]["version"], VERSION, "{said}");
    for (language, runtime, code) in PROGRAMS {
        let result = client.run(json!({ "language": language, "code": code }));
        let seen = &result["structuredContent"];
        assert_eq!(seen["stdout"], "42\n", "{result}");
        // The one below the image, and not one that is built in.
        let used = &result["_meta"]["dev.hotcell/run"]["runtime"];
        assert_eq!(used["name"], runtime, "{result}");
    }
    let options = ["--network=none", "--entrypoint=python3"];
    let who = ["-c", "import os; print(os.getuid())"];
    assert_eq!(succeed(&mut loaded.podman(&options, &who)), "1000\n");
    client.close();

    // Over HTTP, with a token of ours.
    let options = ["--network=host", "--env=HOTCELL_TOKEN=chosen-by-this-test"];
    let mut command = loaded.podman(&options, &["serve", "--http", "127.0.0.1:0"]);
    let mut server = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let mut said = lines.by_ref().map_while(Result::ok);
    let line = said.find(|line| line.contains("http://"));
    let line = line.expect("it says where it is");
    let url = &line[line.find("http://").unwrap()..];
    let post = |token: &str, message: Value| {
        let mut curl = Command::new("curl");
        curl.args([
            "--silent",
            "--max-time",
            "60",
            "--data",
            &message.to_string(),
        ]);
        for header in [
            "Accept: application/json, text/event-stream",
            "Content-Type: application/json",
            &format!("Authorization: Bearer {token}"),
        ] {
            curl.args(["--header", header]);
        }
        succeed(curl.arg(url))
    };
    for (language, _, code) in PROGRAMS {
        let message = call("run", json!({ "language": language, "code": code }));
        let answer = post("chosen-by-this-test", message);
        assert!(answer.contains("\"stdout\":\"42\\n\""), "{answer}");
    }
    // Control: the token is asked for.
    let message = call("run", json!({ "language": "php", "code": PROGRAMS[3].2 }));
    assert!(!post("another", message).contains("stdout"));
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&server),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    server.wait().unwrap();
}
