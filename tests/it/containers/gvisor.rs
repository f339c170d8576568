//! Sandboxes of a real gVisor: `runsc` on the PATH, or where `HOTCELL_RUNSC` says.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::PATIENCE;
use crate::mcp::client::Client;
use crate::support::{Answer, Hotcell, PATH, Running, eventually, everyone, skip};

/// Root, and the PATH that has `runsc`. `scripts/test` builds one.
fn gvisor() -> Option<(Hotcell, String)> {
    let named = std::env::var("HOTCELL_RUNSC").ok();
    let folder = named.as_deref().and_then(|it| Path::new(it).parent());
    let path = folder.map_or(PATH.to_owned(), |it| format!("{}:{PATH}", it.display()));
    let is_there = path
        .split(':')
        .any(|it| Path::new(it).join("runsc").exists());
    let Some(hotcell) = everyone().into_iter().find(|it| it.uid == 0) else {
        println!("SKIP gVisor is for a server of root's");
        return None;
    };
    if !is_there {
        skip("there is no `runsc` on the PATH or in HOTCELL_RUNSC");
        return None;
    }
    Some((hotcell, path))
}

fn command(hotcell: &Hotcell, path: &str, words: &[&str]) -> Command {
    let mut command = hotcell.command();
    command.env("PATH", path).args(words);
    command
}

fn run(hotcell: &Hotcell, path: &str, arguments: &[&str]) -> Answer {
    let words = [&["run", "--isolation", "gvisor"], arguments].concat();
    Running::start(&mut command(hotcell, path, &words)).finish()
}

/// The sandboxes whose `runsc` is a child of this process.
fn sandboxes_of(pid: u32) -> usize {
    let is_one = |entry: &fs::DirEntry| {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let name = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        let parent = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        parent == Some(pid) && name.contains("--bundle=")
    };
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(is_one)
        .count()
}

/// The kernels that serve sandboxes whose state is in memory, of whomever.
fn kernels() -> Vec<String> {
    let line = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("cmdline")).ok();
    let lines = fs::read_dir("/proc").unwrap().flatten().filter_map(line);
    lines
        .filter(|it| it.starts_with("runsc-sandbox") && it.contains("--root=/mnt/state"))
        .collect()
}

#[test]
fn a_program_runs_on_a_kernel_of_its_own() {
    let Some((hotcell, path)) = gvisor() else {
        return;
    };
    let code = "import os, socket, sys\nprint(os.uname().release.endswith('gvisor'), sys.stdin.read(), os.getuid() != 0)\n\
        def tried(work):\n    try: work(); print('done')\n    except OSError: print('refused')\n\
        tried(lambda: open('/usr/bin/new', 'w'))\ntried(lambda: open('/etc/new', 'w'))\n\
        tried(lambda: socket.create_connection(('192.0.2.1', 80), 2))\n\
        tried(lambda: open('/root/.bashrc'))\ntried(lambda: open('new', 'w'))\nsys.exit(3)";
    let result = run(&hotcell, &path, &["--json", "-l", "python", "-c", code]).json();
    assert_eq!(
        result["stdout"], "True  True\nrefused\nrefused\nrefused\nrefused\ndone\n",
        "{result}"
    );
    assert_eq!(result["exit_code"], 3);
    assert_eq!(result["isolation"]["provider"], "gvisor");
    // The control: the jail shares the host's kernel, and refuses who requires another.
    let required = ["--require", "kernel", "-l", "python", "-c", "print(1)"];
    assert_eq!(run(&hotcell, &path, &required).out(), "1\n");
    let refused = hotcell.run(&required);
    assert_eq!(
        (refused.out(), refused.code == Some(0)),
        (String::new(), false)
    );
    assert!(refused.err().contains("gvisor"), "{}", refused.err());
    let own = hotcell.run(&[
        "-l",
        "python",
        "-c",
        "import os; print(os.uname().release.endswith('gvisor'))",
    ]);
    assert_eq!(own.out(), "False\n", "{}", own.err());
}

#[test]
fn its_limits_hold() {
    let Some((hotcell, path)) = gvisor() else {
        return;
    };
    let python = |arguments: &[&str], code: &str| {
        run(
            &hotcell,
            &path,
            &[&["--json"], arguments, &["-l", "python", "-c", code]].concat(),
        )
        .json()
    };
    let much =
        "import time\nx = [b'a' * (1 << 20) for _ in range(400)]\ntime.sleep(1)\nprint(len(x))";
    let ended = python(&["--memory", "128m"], much);
    assert_eq!(ended["status"], "memory", "{ended}");
    let ended = python(&["--memory", "900m"], much);
    assert_eq!(ended["stdout"], "400\n", "{ended}");
    let ended = python(
        &["--timeout", "2s"],
        "print(1, flush=True)\nwhile True: pass",
    );
    assert_eq!(
        (&ended["status"], &ended["stdout"]),
        (&json!("timeout"), &json!("1\n"))
    );
    let forks = "import os, time\nn = 0\ntry:\n  while n < 60:\n    if os.fork() == 0: time.sleep(60)\n    n += 1\nexcept OSError: pass\nprint(n)";
    let ended = python(&["--pids", "20"], forks);
    let forked: u32 = ended["stdout"].as_str().unwrap().trim().parse().unwrap();
    assert!(forked <= 20, "{ended}");
}

#[test]
fn what_it_cannot_do_is_said_and_nothing_runs() {
    let Some((hotcell, path)) = gvisor() else {
        return;
    };
    let granted = ["--network", "a.example", "-l", "sh", "-c", "echo 1"];
    let answer = run(&hotcell, &path, &granted);
    assert_eq!(
        (answer.out(), answer.code == Some(0)),
        (String::new(), false)
    );
    assert!(
        answer.err().contains("cannot reach a network"),
        "{}",
        answer.err()
    );
    let answer = run(&hotcell, "/nowhere", &["-l", "lua", "-c", "print(1)"]);
    assert!(
        answer.err().contains("`runsc` was not found"),
        "{}",
        answer.err()
    );
}

#[test]
fn a_server_keeps_sandboxes_ready_and_leaves_none() {
    let Some((hotcell, path)) = gvisor() else {
        return;
    };
    let log = hotcell.place("home/log");
    let mut serve = command(&hotcell, &path, &["serve", "--isolation", "gvisor"]);
    serve
        .env("HOTCELL_LOG", "debug")
        .stderr(fs::File::create(&log).unwrap());
    let mut client = Client::of(serve);
    client.begin();
    let pid = client.child.id();
    let mut call = |arguments: Value| crate::raw::record(&client.run(arguments));
    let warm = || {
        let facts = call(json!({ "code": "print(1)", "language": "python" }));
        assert_eq!(facts["stdout"], "1\n", "{facts}");
        assert!(eventually(PATIENCE, || sandboxes_of(pid) > 0));
        fs::read_to_string(&log)
            .unwrap()
            .contains("from=\"the warm pool\"")
    };
    assert!(eventually(PATIENCE, warm));
    let mut call = |arguments: Value| crate::raw::record(&client.run(arguments));
    call(json!({ "code": "x = 20", "language": "python", "session": "s" }));
    let facts = call(json!({ "code": "print(x + 1)", "language": "python", "session": "s" }));
    assert_eq!(facts["stdout"], "21\n", "{facts}");
    let fork =
        json!({ "name": "session", "arguments": { "action": "fork", "name": "s", "to": "t" } });
    let forked = client.request("tools/call", fork);
    // No process of another kernel can be copied, and that is said.
    let note = &forked["result"]["structuredContent"]["note"];
    assert!(
        note.as_str()
            .is_some_and(|it| it.contains("only the files")),
        "{forked}"
    );
    assert_ne!(kernels().len(), 0, "the control: they are found");
    client.child.kill().expect("SIGKILL");
    let gone = eventually(PATIENCE, || kernels().is_empty());
    assert!(gone, "{:?}", kernels());
}
