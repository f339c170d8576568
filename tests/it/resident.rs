//! `hotcell run` beside a server of the same user: the same result to the last byte, in a sandbox that was waiting.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::support::{Answer, Hotcell, PATIENCE, Running, eventually, everyone};

/// What the log says of a sandbox that came from a server.
const BORROWED: &str = "sandbox borrowed";

/// A server of `hotcell`'s user, and its runtime folder.
struct Server<'a> {
    hotcell: &'a Hotcell,
    running: Running,
}

impl<'a> Server<'a> {
    fn start(hotcell: &'a Hotcell) -> Self {
        let mut command = dressed(hotcell);
        command.arg("serve").stdin(Stdio::piped());
        let running = Running::start(&mut command);
        let server = Self { hotcell, running };
        server.wait_for_socket();
        server
    }

    fn wait_for_socket(&self) {
        let folder = self.hotcell.place("run/hotcell");
        let is_there = || {
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let mut names = entries.map(|entry| entry.path());
            names.any(|path| path.extension().is_some_and(|it| it == "sock"))
        };
        assert!(eventually(PATIENCE, is_there), "the server has no socket");
    }

    fn run(&self, input: Option<&[u8]>, arguments: &[&str]) -> Answer {
        run(self.hotcell, input, arguments)
    }

    /// Whether runs use this server. One on a busy machine may give up waiting for it.
    fn is_used(&self) -> bool {
        eventually(PATIENCE, || self.lends())
    }

    /// Whether a run has used it now.
    fn lends(&self) -> bool {
        let mut command = dressed(self.hotcell);
        command.env("HOTCELL_LOG", "debug");
        command.args(["run", "-l", "sh", "-c", "exit 0"]);
        let answer = Running::start(&mut command).finish();
        assert_eq!(answer.code, Some(0), "{}", answer.err());
        answer.err().contains(BORROWED)
    }
}

/// `hotcell`, with a runtime folder.
fn dressed(hotcell: &Hotcell) -> Command {
    let folder = hotcell.make_folder("run");
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("its own folder");
    let mut command = hotcell.command();
    command.env("XDG_RUNTIME_DIR", folder);
    command
}

fn run(hotcell: &Hotcell, input: Option<&[u8]>, arguments: &[&str]) -> Answer {
    let mut command = dressed(hotcell);
    command.arg("run").args(arguments);
    match input {
        None => Running::start(&mut command).finish(),
        Some(input) => Running::start(command.stdin(Stdio::piped())).finish_with(input),
    }
}

#[test]
fn a_run_beside_a_server_ends_as_it_does_alone() {
    for hotcell in everyone() {
        let server = Server::start(&hotcell);
        assert!(server.is_used(), "as {}", hotcell.name);
        hotcell.write("home/helper.py", "def word():\n    return 'beside'\n");
        hotcell.write(
            "home/own.py",
            "import helper, sys\nprint(helper.word(), sys.argv, __file__)\n",
        );
        hotcell.write("home/data.txt", "data\n");
        let python = |code: &'static str| vec!["-l", "python", "-c", code];
        let cases: Vec<(Option<&[u8]>, Vec<&str>)> = vec![
            (None, python("print(6 * 7)")),
            (
                None,
                python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"),
            ),
            (None, python("1 / 0")),
            (
                None,
                python("import os; print('last', flush=True); os.kill(os.getpid(), 9)"),
            ),
            (
                Some(b"a\nb\nc"),
                python("import sys; print([it.strip() for it in sys.stdin])"),
            ),
            (Some(b""), python("print(input())")),
            (
                None,
                [
                    python("import sys; print(sys.argv[1:])"),
                    vec!["a", "-b", "--json"],
                ]
                .concat(),
            ),
            (None, vec!["own.py", "x"]),
            (
                None,
                [
                    vec!["--file", "data.txt"],
                    python("print(open('data.txt').read())"),
                ]
                .concat(),
            ),
            (
                None,
                [
                    vec!["--env", "NAME=value"],
                    python("import os; print(os.environ['NAME'])"),
                ]
                .concat(),
            ),
            (
                None,
                [
                    vec!["--timeout", "1"],
                    python("print('begun', flush=True)\nwhile True: pass"),
                ]
                .concat(),
            ),
            (
                None,
                [vec!["--memory", "64m"], python("x = bytearray(1 << 30)")].concat(),
            ),
            (
                None,
                [
                    vec!["--mount", "data.txt:/data.txt"],
                    python("print(open('/data.txt').read())"),
                ]
                .concat(),
            ),
            (None, vec!["-l", "sh", "-c", "echo $0; exit 3"]),
            (None, vec!["-l", "lua@embedded", "-c", "print(_VERSION)"]),
            (None, vec!["-l", "klingon", "-c", "x"]),
            (None, vec!["missing.py"]),
        ];
        for (input, arguments) in cases {
            let alone = [&["--no-server"], &arguments[..]].concat();
            let alone = server.run(input, &alone);
            // The first may be new, and later ones waited.
            for _ in 0..2 {
                let beside = server.run(input, &arguments);
                assert_eq!(
                    beside.whole(),
                    alone.whole(),
                    "as {}: {arguments:?}",
                    hotcell.name
                );
            }
        }
    }
}

#[test]
fn files_and_json_come_back_from_a_borrowed_sandbox() {
    for hotcell in everyone() {
        let server = Server::start(&hotcell);
        let code = "open('made.txt', 'w').write('made')\nprint(1)";
        let out = hotcell.make_folder("out");
        let out = out.to_str().expect("text");
        let answer = server.run(None, &["--out", out, "-l", "python", "-c", code]);
        assert_eq!(answer.whole(), (Some(0), "1\n".to_owned(), String::new()));
        let made = fs::read_to_string(hotcell.place("out/made.txt"));
        assert_eq!(made.expect("the file"), "made");

        let facts = |answer: Answer| {
            let value = answer.json();
            let names = [
                "status",
                "exit_code",
                "stdout",
                "stderr",
                "language",
                "artifacts",
            ];
            names.map(|name| value[name].clone())
        };
        let arguments = ["--json", "-l", "python", "-c", code];
        let alone = server.run(None, &[&["--no-server"], &arguments[..]].concat());
        assert_eq!(facts(server.run(None, &arguments)), facts(alone));
        // Each is recorded, as a run alone is.
        let logs = dressed(&hotcell).args(["logs", "--json"]).output();
        let logs = String::from_utf8(logs.expect("the records").stdout).expect("text");
        assert_eq!(logs.lines().count(), 3, "{logs}");
    }
}

#[test]
fn an_interrupt_and_a_killed_client_reach_a_borrowed_program() {
    for hotcell in everyone() {
        let server = Server::start(&hotcell);
        let code = "import time\nopen('/tmp/mark', 'w').close()\ntry:\n    print('ready', flush=True)\n    time.sleep(300)\nexcept KeyboardInterrupt:\n    print('heard')\n    raise SystemExit(5)";
        let start = || {
            let mut command = dressed(&hotcell);
            command.args(["run", "-l", "python", "-c", code]);
            let mut running = Running::start(&mut command);
            running.stdout.until("ready\n");
            running
        };
        // One that is made at first, one that waited.
        for _ in 0..2 {
            let running = start();
            running.signal(Signal::INT);
            let answer = running.finish();
            assert_eq!(
                answer.whole(),
                (Some(5), "ready\nheard\n".to_owned(), String::new())
            );
        }
        // The server is the parent of its sandboxes, and this one has the file.
        let parent = format!("PPid:\t{}\n", server.running.pid());
        let is_there = || {
            let mut all = fs::read_dir("/proc").into_iter().flatten().flatten();
            all.any(|process| {
                let status = fs::read_to_string(process.path().join("status"));
                let is_child = status.is_ok_and(|status| status.contains(&parent));
                is_child && process.path().join("root/tmp/mark").exists()
            })
        };
        let running = start();
        assert!(is_there(), "control");
        running.signal(Signal::KILL);
        drop(running);
        assert!(
            eventually(PATIENCE, || !is_there()),
            "it outlives who asked for it"
        );
        assert!(server.is_used());
    }
}

#[test]
fn a_server_that_is_killed_leaves_a_clear_error_and_the_next_run_is_alone() {
    for hotcell in everyone() {
        let mut server = Server::start(&hotcell);
        let mut command = dressed(&hotcell);
        let code = "import time\nprint('ready', flush=True)\ntime.sleep(300)";
        command.args(["run", "-l", "python", "-c", code]);
        let mut running = Running::start(&mut command);
        running.stdout.until("ready");
        server.running.signal(Signal::KILL);
        let answer = running.finish();
        assert_eq!(answer.code, Some(125), "{}", answer.err());
        assert!(answer.err().contains("vanished"), "{}", answer.err());
        assert!(eventually(PATIENCE, || server.running.has_ended()));
        assert!(!server.lends(), "a socket that nobody listens at");
        // The next server removes it.
        let next = Server::start(&hotcell);
        assert!(next.is_used());
        let sockets = fs::read_dir(hotcell.place("run/hotcell")).expect("its folder");
        assert_eq!(sockets.count(), 1);
    }
}

#[test]
fn a_server_that_ends_waits_for_what_it_has_lent() {
    for hotcell in everyone() {
        let mut server = Server::start(&hotcell);
        let mut command = dressed(&hotcell);
        command.args([
            "run",
            "-l",
            "python",
            "-c",
            "print('ready', flush=True); print(input())",
        ]);
        let mut running = Running::start(command.stdin(Stdio::piped()));
        running.stdout.until("ready");
        drop(server.running.stdin.take());
        let gone = || fs::read_dir(hotcell.place("run/hotcell")).is_ok_and(|it| it.count() == 0);
        assert!(eventually(PATIENCE, gone), "it still listens");
        running
            .stdin
            .as_mut()
            .expect("a pipe")
            .write_all(b"later\n")
            .expect("it reads");
        assert_eq!(
            running.finish().whole(),
            (Some(0), "ready\nlater\n".to_owned(), String::new())
        );
        assert!(eventually(PATIENCE, || server.running.has_ended()));
    }
}

#[test]
fn a_folder_that_others_can_change_and_another_build_are_not_used() {
    for hotcell in everyone() {
        let server = Server::start(&hotcell);
        let folder = hotcell.place("run/hotcell");
        assert!(server.is_used(), "control");
        fs::set_permissions(&folder, Permissions::from_mode(0o770)).expect("changed");
        assert!(!server.lends(), "others may write to it");
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("changed");
        assert!(server.is_used(), "control");
        if rustix::process::getuid().is_root() {
            chown(&folder, Some(12345), None).expect("root gives it away");
            assert!(!server.lends(), "it is another's");
            chown(&folder, Some(hotcell.uid), None).expect("and takes it back");
        }
        // The same version, and not the same program.
        let mut bytes = fs::read(hotcell.binary()).expect("the binary");
        bytes.push(0);
        let other = hotcell.write("bin/other", bytes);
        fs::set_permissions(&other, Permissions::from_mode(0o755)).expect("executable");
        let mut command = Command::new(&other);
        hotcell.dress(&mut command);
        command
            .env("XDG_RUNTIME_DIR", hotcell.place("run"))
            .env("HOTCELL_LOG", "debug");
        command.args(["run", "-l", "python", "-c", "print(1)"]);
        let answer = Running::start(&mut command).finish();
        assert_eq!((answer.code, answer.out()), (Some(0), "1\n".to_owned()));
        assert!(!answer.err().contains(BORROWED), "{}", answer.err());
        assert!(server.is_used(), "control");
    }
}

#[test]
fn a_socket_that_systemd_opens_is_served() {
    for hotcell in everyone() {
        // As systemd does: the socket is there first, and the server is started with it.
        let activate = "import os, socket, sys\n\
            folder = os.path.join(os.environ['XDG_RUNTIME_DIR'], 'hotcell')\n\
            os.mkdir(folder, 0o700)\n\
            it = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n\
            it.bind(os.path.join(folder, 'run.sock'))\n\
            it.listen(8)\n\
            os.dup2(it.fileno(), 3)\n\
            os.set_inheritable(3, True)\n\
            os.environ['LISTEN_FDS'] = '1'\n\
            os.environ['LISTEN_PID'] = str(os.getpid())\n\
            os.execv(sys.argv[1], [sys.argv[1], 'serve'])";
        let mut command = Command::new("/usr/bin/python3");
        hotcell.dress(&mut command);
        drop(dressed(&hotcell));
        command.env("XDG_RUNTIME_DIR", hotcell.place("run"));
        command.args(["-c", activate]).arg(hotcell.binary());
        let running = Running::start(&mut command);
        let mut server = Server {
            hotcell: &hotcell,
            running,
        };
        server.wait_for_socket();
        // The socket was there before the server is, which a busy machine starts late.
        assert!(server.is_used(), "as {}", hotcell.name);
        let answer = server.run(None, &["-l", "python", "-c", "print(6 * 7)"]);
        assert_eq!(answer.whole(), (Some(0), "42\n".to_owned(), String::new()));
        server.running.signal(Signal::TERM);
        assert!(eventually(PATIENCE, || server.running.has_ended()));
    }
}
