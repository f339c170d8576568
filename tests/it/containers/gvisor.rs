//! Sandboxes of a real gVisor: `runsc` on the PATH, or where `HOTCELL_RUNSC` says.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::PATIENCE;
use crate::mcp::client::Client;
use crate::support::{Answer, Hotcell, Running, eventually, everyone, isolation, skip};

/// Whoever has a cell of gVisor, if there is `runsc`.
fn everybody() -> Vec<Hotcell> {
    match isolation::runsc() {
        Some(_) => everyone(),
        None => {
            skip("there is no `runsc` on the PATH or in HOTCELL_RUNSC");
            Vec::new()
        }
    }
}

/// Root alone.
pub fn gvisor() -> Option<(Hotcell, String)> {
    let hotcell = everybody().into_iter().find(|it| it.uid == 0)?;
    Some((hotcell, isolation::path()))
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

/// The parent of a process that lives, when it was started, and its words.
fn facts(pid: u32) -> Option<(u32, String, String)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let field = |number: usize| rest.split(' ').nth(number - 3);
    let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
    if field(3) == Some("Z") {
        return None;
    }
    Some((field(4)?.parse().ok()?, field(22)?.to_owned(), words))
}

/// All processes below this one, each by its number and when it was started.
fn below(pid: u32) -> Vec<(u32, String)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|it| it.file_name().to_str()?.parse().ok());
    let all: Vec<(u32, u32, String)> = numbers
        .filter_map(|it| facts(it).map(|(parent, start, _)| (it, parent, start)))
        .collect();
    let mut found = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        for (child, _, start) in all.iter().filter(|it| it.1 == parent) {
            parents.push(*child);
            found.push((*child, start.clone()));
        }
    }
    found
}

/// Whether a process among these is the kernel of a sandbox.
fn has_kernel(processes: &[(u32, String)]) -> bool {
    let is_one = |(pid, _): &(u32, String)| {
        facts(*pid).is_some_and(|(_, _, words)| words.starts_with("runsc-sandbox"))
    };
    processes.iter().any(is_one)
}

/// Those of these processes that live.
fn alive(processes: &[(u32, String)]) -> Vec<u32> {
    let lives = |(pid, start): &&(u32, String)| facts(*pid).is_some_and(|it| it.1 == *start);
    processes.iter().filter(lives).map(|it| it.0).collect()
}

#[test]
fn a_program_runs_on_a_kernel_of_its_own() {
    for hotcell in everybody() {
        runs_on_its_own_kernel(&hotcell, &isolation::path());
    }
}

/// For root and for an ordinary user, who has one id and no right to make anything.
fn runs_on_its_own_kernel(hotcell: &Hotcell, path: &str) {
    let code = "import os, socket, sys\nprint(os.uname().release.endswith('gvisor'), sys.stdin.read(), os.getuid() != 0)\n\
        def tried(work):\n    try: work(); print('done')\n    except OSError: print('refused')\n\
        tried(lambda: open('/usr/bin/new', 'w'))\ntried(lambda: open('/etc/new', 'w'))\n\
        tried(lambda: socket.create_connection(('192.0.2.1', 80), 2))\n\
        tried(lambda: open('/root/.bashrc'))\ntried(lambda: open('new', 'w'))\nsys.exit(3)";
    let result = run(hotcell, path, &["--json", "-l", "python", "-c", code]).json();
    assert_eq!(
        result["stdout"], "True  True\nrefused\nrefused\nrefused\nrefused\ndone\n",
        "{result}"
    );
    assert_eq!(result["exit_code"], 3);
    assert_eq!(result["isolation"]["provider"], "gvisor");
    // The control: the jail shares the host's kernel, and refuses who requires another.
    let required = ["--require", "kernel", "-l", "python", "-c", "print(1)"];
    assert_eq!(run(hotcell, path, &required).out(), "1\n");
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
    let folder = hotcell.make_folder("home/data");
    let mount = format!("{}:/data", folder.display());
    let write = ["-l", "sh", "-c", "touch /data/a; echo 1"];
    let answer = run(
        &hotcell,
        &path,
        &[&["--mount", &mount], &write[..]].concat(),
    );
    assert_eq!(
        (answer.out(), answer.code == Some(0)),
        (String::new(), false)
    );
    assert!(
        answer.err().contains("cannot write to folders"),
        "{}",
        answer.err()
    );
    // An ordinary user's files are its own there too.
    for user in everybody().into_iter().filter(|it| it.uid != 0) {
        let folder = user.make_folder("home/data");
        let mount = format!("{}:/data", folder.display());
        let answer = run(&user, &path, &[&["--mount", &mount], &write[..]].concat());
        assert_eq!(answer.out(), "1\n", "{}", answer.err());
        assert!(folder.join("a").exists());
    }
    let answer = run(&hotcell, "/nowhere", &["-l", "lua", "-c", "print(1)"]);
    assert!(
        answer.err().contains("`runsc` was not found"),
        "{}",
        answer.err()
    );
}

#[test]
fn a_granted_network_is_reached_by_the_proxy_alone_and_by_sockets_that_the_result_names() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let code = format!(
        "import socket, urllib.request\n\
        try: socket.create_connection(('127.0.0.1', {port}), 2); print('reached')\n\
        except OSError: print('refused')\n\
        print([line.split(':')[0].strip() for line in open('/proc/net/dev')][2:])\n\
        urllib.request.urlopen('http://other.example/')"
    );
    for hotcell in everybody() {
        let granted = ["--network", "granted.example", "-l", "python", "-c", &code];
        let arguments = [&["--json", "--require", "kernel"], &granted[..]].concat();
        let result = run(&hotcell, &isolation::path(), &arguments).json();
        let name = hotcell.name;
        assert!(!has_own_sockets(&result), "{name}: {result}");
        let without = ["--json", "-l", "python", "-c", "print(1)"];
        let without = run(&hotcell, &isolation::path(), &without).json();
        assert!(has_own_sockets(&without), "{name}: {without}");
        assert_eq!(result["stdout"], "refused\n['lo']\n", "{name}: {result}");
        assert_eq!(result["isolation"]["provider"], "gvisor");
        let denied = &result["network"]["denied"][0]["host"];
        assert_eq!(denied, "other.example:80", "{name}: {result}");
    }
    // The control: out here somebody listens.
    std::net::TcpStream::connect(("127.0.0.1", port)).expect("it listens");
}

fn has_own_sockets(result: &Value) -> bool {
    let walls = result["isolation"]["walls"].as_array().unwrap();
    let wall = walls.iter().find(|it| it["name"] == "own sockets");
    wall.unwrap()["stands"] == true
}

#[test]
fn a_server_keeps_sandboxes_ready_and_leaves_none() {
    for hotcell in everybody() {
        keeps_ready_and_leaves_none(&hotcell, &isolation::path());
    }
}

fn keeps_ready_and_leaves_none(hotcell: &Hotcell, path: &str) {
    let log = hotcell.place("home/log");
    let mut serve = command(hotcell, path, &["serve", "--isolation", "gvisor"]);
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
        assert!(eventually(PATIENCE, || has_kernel(&below(pid))));
        fs::read_to_string(&log)
            .unwrap()
            .contains("from=\"the warm pool\"")
    };
    assert!(eventually(PATIENCE, warm));
    let mut call = |arguments: Value| crate::raw::record(&client.run(arguments));
    call(json!({ "code": "x = 20", "language": "python", "session": "s" }));
    let facts = call(json!({ "code": "print(x + 1)", "language": "python", "session": "s" }));
    assert_eq!(facts["stdout"], "21\n", "{facts}");
    call(json!({ "code": "y=1", "language": "bash", "session": "s" }));
    let fork =
        json!({ "name": "session", "arguments": { "action": "fork", "name": "s", "to": "t" } });
    let forked = client.request("tools/call", fork);
    // No process of another kernel can be copied, and that is said of each language.
    let note = &forked["result"]["structuredContent"]["note"];
    assert!(
        note.as_str()
            .is_some_and(|it| it.contains("only the files of python, shellscript:")),
        "{forked}"
    );
    let all = below(pid);
    assert!(has_kernel(&all), "the control: they are found");
    client.child.kill().expect("SIGKILL");
    let gone = eventually(PATIENCE, || alive(&all).is_empty());
    assert!(gone, "{:?}", alive(&all));
}
