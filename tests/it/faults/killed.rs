//! Single processes of a server that somebody kills: a sandbox that waits, the sweeper, a program by the host's own memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::kill;
use crate::mcp::client::Client;
use crate::support::left::{children, groups, is_apart, is_asleep, name};
use crate::support::{Hotcell, PATIENCE, Running, eventually, everyone};

fn serve(hotcell: &Hotcell) -> Client {
    let mut command = hotcell.command();
    command.arg("serve");
    let mut client = Client::of(command);
    client.begin();
    client
}

/// The first process in each sandbox of a server, and what waits in it for a program.
fn waiting(server: u32) -> Vec<(u32, u32)> {
    let inits = children(server)
        .into_iter()
        .filter(|pid| is_apart(*pid, "pid"));
    inits
        .filter_map(|init| Some((init, *children(init).first()?)))
        .collect()
}

#[test]
fn a_sandbox_that_died_while_it_waited_gets_no_program() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell);
        let server = client.child.id();
        let program = json!({ "language": "python", "code": "print('ran')" });
        let mut run = || {
            let result = client.run(program.clone());
            let facts = &result["structuredContent"];
            assert_eq!(facts["stdout"], "ran\n", "{}: {facts}", hotcell.name);
        };
        // Control: with nobody killed it runs.
        run();
        for which in ["program", "init"] {
            let ready = eventually(PATIENCE, || waiting(server).len() >= 2);
            assert!(ready, "no sandbox waits");
            let found = waiting(server);
            for (init, program) in &found {
                kill(if which == "init" { *init } else { *program });
            }
            // A sandbox whose program is gone has told so once it waits again, and one without its first process is gone itself.
            let is_over = |init: u32| {
                children(init).is_empty() && is_asleep(init) || !children(server).contains(&init)
            };
            let told = || found.iter().all(|(init, _)| is_over(*init));
            assert!(eventually(PATIENCE, told), "as {}", hotcell.name);
            for _ in 0..6 {
                run();
            }
        }
    }
}

#[test]
fn a_sweeper_that_was_killed_is_replaced_and_does_its_work() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell);
        let server = client.child.id();
        let run = |client: &mut Client| {
            let result = client.run(json!({ "language": "python", "code": "print('ran')" }));
            assert_eq!(result["structuredContent"]["stdout"], "ran\n", "{result}");
        };
        run(&mut client);
        if groups(server).is_empty() {
            // There is nothing to sweep.
            continue;
        }
        // It is in no namespace of its own, as a spawner is.
        let sweeper = || {
            let mut all = children(server).into_iter();
            all.find(|pid| name(*pid) == "hotcell-spawner" && !is_apart(*pid, "user"))
        };
        let mut first = None;
        assert!(eventually(PATIENCE, || {
            first = sweeper();
            first.is_some()
        }));
        kill(first.expect("a sweeper"));
        let replaced = eventually(PATIENCE, || sweeper().is_some_and(|it| Some(it) != first));
        assert!(replaced, "as {}", hotcell.name);
        run(&mut client);
        assert!(!groups(server).is_empty(), "the control: there are some");
        kill(server);
        let _ = client.child.wait();
        let swept = eventually(PATIENCE, || groups(server).is_empty());
        assert!(swept, "{:?}", groups(server));
    }
}

/// A server is the first process of a pid namespace in most containers: the kernel ends all others there with it.
#[test]
fn the_next_server_removes_the_groups_of_one_that_was_killed_as_pid_1() {
    let root = everyone().into_iter().find(|hotcell| hotcell.uid == 0);
    let Some(hotcell) = root else { return };
    let mut inside = Command::new("/usr/bin/unshare");
    inside.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
    hotcell.dress(inside.arg(hotcell.binary()).arg("serve"));
    let mut client = Client::of(inside);
    client.begin();
    let run = |client: &mut Client| {
        let result = client.run(json!({ "language": "python", "code": "print('ran')" }));
        assert_eq!(result["structuredContent"]["stdout"], "ran\n", "{result}");
    };
    run(&mut client);
    let [server] = children(client.child.id())[..] else {
        panic!("one child of unshare");
    };
    let namespace = fs::read_link(format!("/proc/{server}/ns/pid")).expect("its namespace");
    let namespace = namespace
        .display()
        .to_string()
        .replace(['p', 'i', 'd', ':', '[', ']'], "");
    let left = || -> Vec<String> {
        let all = groups(1).into_iter();
        all.filter(|it| it.contains(&format!("hotcell-{namespace}-")))
            .collect()
    };
    let mut next = serve(&hotcell);
    run(&mut next);
    if groups(next.child.id()).is_empty() {
        // There is nothing to sweep.
        return;
    }
    assert!(!left().is_empty(), "the control: a live one keeps its own");
    kill(server);
    let _ = client.child.wait();
    // Any server that starts now may be the next one: another test's, or this.
    let mut next = serve(&hotcell);
    run(&mut next);
    match fs::read_link("/proc/self/ns/pid").is_ok_and(|it| it == Path::new("pid:[4026531836]")) {
        true => assert!(eventually(PATIENCE, || left().is_empty()), "{:?}", left()),
        // From another namespace nobody can tell whether it has ended.
        false => assert!(!left().is_empty()),
    }
}

/// A cgroup of version 1 that limits the memory of all that is started in it.
struct Limited(PathBuf);

impl Limited {
    fn new(bytes: u64) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.split_once(":memory:"))?.1;
        let parent = Path::new("/sys/fs/cgroup/memory").join(own.trim_start_matches('/'));
        let folder = parent.join(format!("it-limited-{}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let limited = Self(folder);
        fs::write(limited.0.join("memory.limit_in_bytes"), bytes.to_string()).ok()?;
        Some(limited)
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        eventually(PATIENCE, || fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn a_kill_by_the_host_s_memory_is_not_called_the_program_s_limit() {
    let root = everyone().into_iter().find(|hotcell| hotcell.uid == 0);
    // A limit above hotcell itself is the nearest thing to a host without memory.
    let (Some(hotcell), Some(limited)) = (root, Limited::new(300 << 20)) else {
        println!("no cgroup of version 1 to limit the memory of a server with");
        return;
    };
    let run = |memory: &str| {
        let code = "held = []\nwhile True: held.append(b'x' * (1 << 20))";
        let script = format!(
            "echo $$ > {}/cgroup.procs && exec {} run --json --memory {memory} -l python -c \"$1\"",
            limited.0.display(),
            hotcell.binary().display()
        );
        let mut command = Command::new("/bin/sh");
        hotcell.dress(command.args(["-c", &script, "sh", code]));
        Running::start(&mut command).finish().json()
    };
    let hosts = run("4g");
    assert_eq!(
        (&hosts["status"], &hosts["error"]["kind"]),
        (&json!("lost"), &json!("lost")),
        "{hosts}"
    );
    let message = hosts["error"]["message"].as_str().expect("words");
    assert!(message.contains("its host ran out of memory"), "{message}");
    // Control: in the same place a program at its own limit is told so.
    let own = run("64m");
    assert_eq!(own["status"], "memory", "{own}");
}
