//! Engines besides root's Podman: that of an ordinary user, and Docker.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::PATIENCE;
use crate::mcp::client::Client;
use crate::support::{Hotcell, Running, eventually, everyone, has, ordinary, with_ids};

/// What a program of ours finds in any container: who it is, and what it may not do.
const PROGRAM: &str = "import os, socket\n\
    def tried(work):\n    try: work(); print('done')\n    except OSError: print('refused')\n\
    tried(lambda: socket.create_connection(('192.0.2.1', 80), 2))\n\
    tried(lambda: open('/usr/bin/new', 'w'))\ntried(lambda: open('new', 'w'))\n\
    print(os.getuid() != 0, os.getppid())";
const FOUND: &str = "refused\nrefused\ndone\nTrue 1\n";

fn json(mut command: Command, arguments: &[&str]) -> Value {
    Running::start(command.args(["run", "--json"]).args(arguments))
        .finish()
        .json()
}

/// An ordinary user's Podman, with all its files in the user's own folder.
struct Rootless {
    hotcell: Hotcell,
}

impl Rootless {
    fn new() -> Option<Self> {
        let hotcell = with_ids().filter(|_| has("podman"))?;
        let runtime = hotcell.make_folder("run");
        fs::set_permissions(runtime, fs::Permissions::from_mode(0o700)).unwrap();
        Some(Self { hotcell })
    }

    fn dress(&self, mut command: Command) -> Command {
        command.env("XDG_RUNTIME_DIR", self.hotcell.place("run"));
        command
    }

    fn command(&self) -> Command {
        self.dress(self.hotcell.command())
    }

    fn podman(&self, arguments: &[&str]) -> String {
        let mut command = self.dress(self.hotcell.other(Path::new("/usr/bin/podman")));
        let said = command.args(arguments).output().expect("podman");
        String::from_utf8(said.stdout).expect("text")
    }
}

impl Drop for Rootless {
    fn drop(&mut self) {
        // It keeps a process that holds its namespaces.
        self.podman(&["system", "migrate"]);
    }
}

#[test]
fn an_ordinary_user_has_containers_without_root() {
    let Some(user) = Rootless::new() else { return };
    let python = ["--isolation", "podman", "-l", "python", "-c"];
    let ended = json(user.command(), &[&python[..], &[PROGRAM]].concat());
    assert_eq!(ended["stdout"], FOUND, "{ended}");
    assert_eq!(ended["isolation"]["provider"], "podman");
    // Without control groups the watcher looks at its memory.
    let much = "import time\nx = bytearray(300 << 20)\ntime.sleep(1)\nprint(len(x))";
    let bounded = |limit: &str| {
        let arguments = [&["--memory", limit], &python[..], &[much]].concat();
        json(user.command(), &arguments)
    };
    assert_eq!(bounded("128m")["status"], "memory");
    assert_eq!(bounded("900m")["status"], "ok", "the control");

    let mut serve = user.command();
    serve.args(["serve", "--isolation", "podman"]);
    let mut client = Client::of(serve);
    client.begin();
    let code = json!({ "code": "x = 20", "language": "python", "session": "s" });
    client.run(code);
    let code = json!({ "code": "print(x + 1)", "language": "python", "session": "s" });
    let answer = crate::raw::record(&client.run(code));
    assert_eq!(answer["stdout"], "21\n", "{answer}");
    let listed = || user.podman(&["ps", "--all", "--quiet"]);
    assert_ne!(listed(), "", "the control: they are listed");
    client.child.kill().expect("SIGKILL");
    assert!(eventually(PATIENCE, || listed().is_empty()), "{}", listed());
}

#[test]
fn a_user_without_ids_is_told_how_to_get_some() {
    let Some(user) = ordinary().filter(|_| has("podman")) else {
        return;
    };
    let answer = user.run(&["--isolation", "podman", "-l", "sh", "-c", "echo 1"]);
    assert_ne!(answer.code, Some(0));
    assert!(answer.err().contains("--add-subuids"), "{}", answer.err());
}

/// A daemon of our own, where it is installed.
struct Docker {
    daemon: Child,
    folder: TempDir,
}

impl Docker {
    fn start() -> Option<Self> {
        let is_root = rustix::process::getuid().is_root();
        let program = Path::new("/usr/sbin/dockerd");
        if !is_root || !program.exists() {
            println!("SKIP no `dockerd` on this host, or nobody who may start it");
            return None;
        }
        let folder = tempfile::Builder::new()
            .prefix("it-")
            .tempdir()
            .expect("a folder");
        let place = |name: &str| folder.path().join(name).display().to_string();
        let daemon = Command::new(program)
            .args(["--iptables=false", "--ip-masq=false", "--bridge=none"])
            .arg(format!("--data-root={}", place("data")))
            .arg(format!("--exec-root={}", place("exec")))
            .arg(format!("--pidfile={}", place("pid")))
            .arg(format!("--host=unix://{}", place("socket")))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(place("log")).expect("a file"))
            .spawn()
            .expect("it starts");
        let docker = Self { daemon, folder };
        let answers = || docker.ask(&["version"]).is_some();
        let log = || fs::read_to_string(docker.folder.path().join("log"));
        assert!(eventually(PATIENCE, answers), "{:?}", log());
        Some(docker)
    }

    fn host(&self) -> String {
        format!("unix://{}", self.folder.path().join("socket").display())
    }

    fn ask(&self, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new("docker");
        let said = command.env("DOCKER_HOST", self.host()).args(arguments);
        let said = said.output().ok()?;
        let text = || String::from_utf8_lossy(&said.stdout).into_owned();
        said.status.success().then(text)
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.daemon), Signal::TERM);
        let _ = self.daemon.wait();
    }
}

#[test]
fn programs_run_in_containers_of_docker() {
    let Some(docker) = Docker::start().filter(|_| has("docker")) else {
        return;
    };
    let Some(hotcell) = everyone().into_iter().find(|it| it.uid == 0) else {
        return;
    };
    let command = || {
        let mut command = hotcell.command();
        command.env("DOCKER_HOST", docker.host());
        command
    };
    let python = ["--isolation", "docker", "-l", "python", "-c"];
    let ended = json(command(), &[&python[..], &[PROGRAM]].concat());
    assert_eq!(ended["stdout"], FOUND, "{ended}");
    assert_eq!(ended["isolation"]["provider"], "docker");
    let much = "x = bytearray(300 << 20)\nprint(len(x))";
    let bounded = |limit: &str| {
        let arguments = [&["--memory", limit], &python[..], &[much]].concat();
        json(command(), &arguments)
    };
    assert_eq!(bounded("128m")["status"], "memory");
    assert_eq!(bounded("900m")["status"], "ok", "the control");

    let mut serve = command();
    serve.args(["serve", "--isolation", "docker"]);
    let mut client = Client::of(serve);
    client.begin();
    let code = json!({ "code": "x = 20", "language": "python", "session": "s" });
    client.run(code);
    let code = json!({ "code": "print(x + 1)", "language": "python", "session": "s" });
    let answer = crate::raw::record(&client.run(code));
    assert_eq!(answer["stdout"], "21\n", "{answer}");
    let listed = || docker.ask(&["ps", "--all", "--quiet"]).expect("a list");
    assert_ne!(listed(), "", "the control: they are listed");
    client.child.kill().expect("SIGKILL");
    assert!(eventually(PATIENCE, || listed().is_empty()), "{}", listed());
}
