//! What is left of containers: nothing.

use std::fs;
use std::process::Command;

use rustix::process::Signal;
use serde_json::json;

use super::{PATIENCE, containers_of, none_is_left, own_image, podman, serve};
use crate::support::{Running, eventually};

#[test]
fn no_container_outlives_its_program_or_its_server() {
    let Some(hotcell) = podman() else { return };
    // A program that has ended.
    let mut ended = Running::start(hotcell.command().args([
        "run",
        "--isolation",
        "podman",
        "-l",
        "sh",
        "-c",
        "echo 1; exec sleep 600",
    ]));
    let pid = ended.pid();
    ended.stdout.until("1");
    assert_eq!(containers_of(pid).len(), 1, "the control: it is listed");
    ended.signal(Signal::TERM);
    drop(ended.finish());
    none_is_left(pid);
    // A server that was killed, with a run on its way, a session, and what was pre-started for the next.
    let mut client = serve(&hotcell);
    let pid = client.child.id();
    let code = json!({ "code": "x = 1", "language": "python", "session": "s" });
    client.run(code);
    let endless = json!({ "code": "while True: pass", "language": "python" });
    client.post("tools/call", json!({ "name": "run", "arguments": endless }));
    assert!(eventually(PATIENCE, || containers_of(pid).len() >= 2));
    client.child.kill().expect("SIGKILL");
    none_is_left(pid);
    // Neither does the folder of a socket, once another server has come.
    let mut client = serve(&hotcell);
    client.run(json!({ "code": "print(1)", "language": "python" }));
    let begin = format!("hotcell-container-{pid}-");
    let is_left = || {
        let entries = fs::read_dir(hotcell.temporary()).unwrap().flatten();
        let mut names = entries.map(|it| it.file_name().into_string().unwrap());
        names.any(|name| name.starts_with(&begin))
    };
    assert!(eventually(PATIENCE, || !is_left()));
}

#[test]
fn what_a_server_that_is_gone_has_left_is_removed_by_the_next() {
    let Some(hotcell) = podman() else { return };
    let image = own_image();
    let created = Command::new("podman")
        .args([
            "create",
            "--network=none",
            "--label=hotcell.server=4194305.7",
            &image,
            "/x",
        ])
        .output()
        .unwrap();
    assert!(created.status.success(), "{created:?}");
    assert_eq!(containers_of(4_194_305).len(), 1);
    let mut client = serve(&hotcell);
    client.run(json!({ "code": "print(1)", "language": "python" }));
    none_is_left(4_194_305);
}
