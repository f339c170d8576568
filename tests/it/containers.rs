//! Sandboxes in containers of a real Podman: what runs in them, what holds it, what is left of them, and what is said where there are none.

mod choice;
mod deploy;
mod engines;
mod gvisor;
mod image;
mod lifetime;
mod machine;
mod nested;
mod suites;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use crate::mcp::client::Client;
use crate::support::{Answer, Hotcell, Running, eventually, everyone, has, skip};

/// The first container of a busy machine takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Root, if Podman starts containers here at all: it tells Podman what to do, and not every test user has ids to map.
fn podman() -> Option<Hotcell> {
    static REFUSED: Mutex<Option<String>> = Mutex::new(None);
    let hotcell = everyone().into_iter().find(|it| it.uid == 0);
    let Some(hotcell) = hotcell.filter(|_| has("podman")) else {
        skip("containers are tested by root, with Podman");
        return None;
    };
    let mut refused = REFUSED.lock().unwrap_or_else(|it| it.into_inner());
    let refused = refused.get_or_insert_with(|| {
        let answer = run(&hotcell, &["-l", "sh", "-c", "exit 7"]);
        match answer.code {
            Some(7) => String::new(),
            _ => answer.err(),
        }
    });
    match refused.is_empty() {
        true => Some(hotcell),
        false => {
            skip(&format!("Podman starts nothing here: {refused}"));
            None
        }
    }
}

fn run(hotcell: &Hotcell, arguments: &[&str]) -> Answer {
    hotcell.run(&[&["--isolation", "podman"], arguments].concat())
}

fn json(hotcell: &Hotcell, arguments: &[&str]) -> Value {
    run(hotcell, &[&["--json"], arguments].concat()).json()
}

fn serve(hotcell: &Hotcell) -> Client {
    let mut command = hotcell.command();
    command.args(["serve", "--isolation", "podman"]);
    let mut client = Client::of(command);
    client.begin();
    client
}

/// The containers that a server of this process number has, in whatever state.
fn containers_of(pid: u32) -> Vec<String> {
    containers_of_any(&[pid])
}

/// The same of any of these servers.
pub fn containers_of_any(pids: &[u32]) -> Vec<String> {
    let format = "{{.ID}} {{.Labels}}";
    let mut ps = Command::new("podman");
    let ps = ps.args(["ps", "--all", "--format", format]).output();
    let listed = String::from_utf8(ps.expect("podman").stdout).expect("text");
    let is_of = |line: &str, pid: &u32| line.contains(&format!("hotcell.server:{pid}."));
    let lines = listed.lines();
    let lines = lines.filter(|line| pids.iter().any(|pid| is_of(line, pid)));
    lines.map(str::to_owned).collect()
}

/// The image that hotcell has made around this system's /usr.
fn own_image() -> String {
    let images = Command::new("podman")
        .args(["images", "--format", "{{.Repository}}:{{.Tag}}"])
        .output();
    let images = String::from_utf8(images.unwrap().stdout).unwrap();
    let mut images = images.lines();
    let found = images.find(|it| it.starts_with("localhost/hotcell-host:"));
    found.expect("podman() has made one").to_owned()
}

fn none_is_left(pid: u32) {
    let gone = eventually(PATIENCE, || containers_of(pid).is_empty());
    assert!(gone, "{:?}", containers_of(pid));
}

#[test]
fn a_program_runs_in_a_container_and_the_result_says_so() {
    let Some(hotcell) = podman() else { return };
    let result = json(
        &hotcell,
        &["-l", "python", "-c", "import sys; print(6*7); sys.exit(3)"],
    );
    assert_eq!(result["status"], "failed", "{result}");
    assert_eq!(
        (&result["exit_code"], &result["stdout"]),
        (&json!(3), &json!("42\n"))
    );
    assert_eq!(result["isolation"]["provider"], "podman");
    let walls = result["isolation"]["walls"].as_array().unwrap();
    let missing = walls.iter().filter(|wall| wall["stands"] == false);
    let missing: Vec<&str> = missing.map(|wall| wall["name"].as_str().unwrap()).collect();
    for name in ["network namespace", "seccomp", "private root"] {
        assert!(!missing.contains(&name), "{missing:?}");
    }
    let first = hotcell.json(&["--isolation", "container", "-l", "sh", "-c", "echo 1"]);
    assert_eq!(first["isolation"]["provider"], "podman", "{first}");
    // The control: without being asked, no engine is.
    let own = hotcell.json(&["-l", "sh", "-c", "echo 1"]);
    assert_eq!(own["isolation"]["provider"], "jail");
}

#[test]
fn streams_and_files_come_whole() {
    let Some(hotcell) = podman() else { return };
    let input = "x".repeat(3 << 20);
    let arguments = ["--isolation", "podman", "-l", "python", "-c"];
    let code = "import sys\nt = sys.stdin.read()\nprint(len(t))\nprint('y' * 100_000)\nsys.stdout.write('z' * (5 << 20))";
    let answer = hotcell.run_with(
        input.as_bytes(),
        &[&["--output-limit", "20m"], &arguments[..], &[code]].concat(),
    );
    let expected = format!(
        "{}\n{}\n{}",
        3 << 20,
        "y".repeat(100_000),
        "z".repeat(5 << 20)
    );
    assert_eq!(answer.code, Some(0), "{}", answer.err());
    assert!(answer.out() == expected, "{} bytes", answer.stdout.len());
}

#[test]
fn a_program_in_a_container_is_at_the_terminal_of_whoever_starts_it() {
    let Some(hotcell) = podman().filter(|_| has("script")) else {
        return;
    };
    let code = "import os; print(os.isatty(0), os.isatty(1), os.tcgetpgrp(0) == os.getpgrp())";
    let binary = hotcell.binary();
    let line = format!(
        "{} run --isolation podman -l python -c '{code}'",
        binary.display()
    );
    let mut terminal = Command::new("script");
    hotcell.dress(&mut terminal);
    let answer = Running::start(terminal.args(["-qec", &line, "/dev/null"])).finish();
    assert_eq!(answer.out(), "True True True\r\n");
    // The control: without one.
    assert_eq!(
        run(&hotcell, &["-l", "python", "-c", code]).out(),
        "",
        "there is no terminal whose group could be asked for"
    );
}

#[test]
fn a_container_holds_what_a_sandbox_holds() {
    let Some(hotcell) = podman() else { return };
    let secret = hotcell.write("home/secret.txt", "of the host");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let code = format!(
        r#"
import os, socket
def tried(what, work):
    try: work(); print(what, 'done')
    except OSError as error: print(what, 'refused')
tried('connect', lambda: socket.create_connection(('127.0.0.1', {port}), 2))
tried('read', lambda: open({secret:?}).read())
tried('write /usr', lambda: open('/usr/bin/new', 'w'))
tried('write /etc', lambda: open('/etc/new', 'w'))
tried('write /run', lambda: open('/run/new', 'w'))
tried('kill', lambda: os.kill(1, 9))
tried('init', lambda: os.listdir('/proc/1/fd'))
tried('workspace', lambda: open('new', 'w'))
tried('tmp', lambda: open('/tmp/new', 'w'))
status = dict(line.split(':\t', 1) for line in open('/proc/self/status') if ':\t' in line)
print([status[name].strip() for name in ('CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp')])
print(sorted(it for it in os.listdir('/proc') if it.isdigit())[0], os.listdir('/run/hotcell'), len(os.listdir('/sys/class/net')))
print(os.getuid() != 0, os.getgid() != 0, os.getppid())
"#
    );
    let answer = run(&hotcell, &["-l", "python", "-c", &code]);
    let expected = "connect refused\nread refused\nwrite /usr refused\nwrite /etc refused\nwrite /run refused\n\
        kill refused\ninit refused\nworkspace done\ntmp done\n['0000000000000000', '0000000000000000', '1', '2']\n\
        1 [] 1\nTrue True 1\n";
    assert_eq!(answer.out(), expected, "{}", answer.err());
    // The controls: outside of a container both are there for whoever asks.
    std::net::TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "of the host");
}

#[test]
fn memory_processes_and_time_are_bounded() {
    let Some(hotcell) = podman() else { return };
    let python = |arguments: &[&str], code: &str| {
        json(
            &hotcell,
            &[arguments, &["-l", "python", "-c", code]].concat(),
        )
    };
    let ended = python(
        &["--memory", "128m"],
        "x = [bytearray(1 << 20) for _ in range(600)]; print(len(x))",
    );
    assert_eq!(ended["status"], "memory", "{ended}");
    // Podman's monitor notes it in a file where it was started.
    let left = fs::read_dir(hotcell.home()).unwrap().flatten();
    let left: Vec<_> = left
        .map(|it| it.file_name())
        .filter(|it| it == "oom")
        .collect();
    assert!(left.is_empty() && !std::path::Path::new("/oom").exists());
    let forks = "import os, time\nn = 0\ntry:\n  while True:\n    if os.fork() == 0: time.sleep(60)\n    n += 1\nexcept OSError: print(n)";
    let ended = python(&["--pids", "20"], forks);
    let forked: u32 = ended["stdout"].as_str().unwrap().trim().parse().unwrap();
    assert!(forked <= 20, "{ended}");
    let ended = python(
        &["--timeout", "1s"],
        "print(1, flush=True)\nwhile True: pass",
    );
    assert_eq!(
        (&ended["status"], &ended["stdout"]),
        (&json!("timeout"), &json!("1\n"))
    );
    // The control: the same within what it may have.
    let ended = python(
        &["--memory", "900m"],
        "x = [bytearray(1 << 20) for _ in range(600)]; print(len(x))",
    );
    assert_eq!(ended["stdout"], "600\n", "{ended}");
}

#[test]
fn languages_of_ours_and_compilers_run_in_containers() {
    let Some(hotcell) = podman() else { return };
    let lua = run(&hotcell, &["-l", "lua", "-c", "print(7 * 6)"]);
    assert_eq!(lua.out(), "42\n", "{}", lua.err());
    if has("gcc") {
        let code = "#include <stdio.h>\nint main(void) { puts(\"compiled\"); }";
        let c = run(&hotcell, &["-l", "c", "-c", code]);
        assert_eq!(c.out(), "compiled\n", "{}", c.err());
    }
}

#[test]
fn a_granted_folder_is_seen_and_one_that_could_not_be_written_to_is_refused() {
    let Some(hotcell) = podman() else { return };
    let folder = hotcell.make_folder("home/data");
    hotcell.write("home/data/a.txt", "granted");
    let mount = format!("{}:/data", folder.display());
    let read_only = format!("{mount}:ro");
    let read = ["-l", "sh", "-c", "cat /data/a.txt; touch /data/b.txt"];
    let answer = run(&hotcell, &[&["--mount", &read_only], &read[..]].concat());
    assert_eq!(answer.out(), "granted", "{}", answer.err());
    assert!(!folder.join("b.txt").exists(), "{}", answer.err());
    let answer = run(&hotcell, &[&["--mount", &mount], &read[..]].concat());
    assert_ne!(answer.code, Some(0));
    assert!(
        answer.err().contains("isolation = \"jail\""),
        "{}",
        answer.err()
    );
    // The control: hotcell's own sandbox maps the ids.
    let answer = hotcell.run(&[&["--mount", &mount], &read[..]].concat());
    assert_eq!(answer.code, Some(0), "{}", answer.err());
    assert!(folder.join("b.txt").exists());
}

#[test]
fn a_refused_host_is_told_by_the_proxy_at_the_containers_loopback() {
    let Some(hotcell) = podman() else { return };
    let code = "import urllib.request\nurllib.request.urlopen('http://other.example/')";
    let arguments = ["--network", "granted.example", "-l", "python", "-c", code];
    let result = json(&hotcell, &arguments);
    assert_eq!(
        result["network"]["denied"][0]["host"], "other.example:80",
        "{result}"
    );
}

#[test]
fn a_session_in_a_container_keeps_values_and_files_and_has_branches() {
    let Some(hotcell) = podman() else { return };
    let mut client = serve(&hotcell);
    let mut call = |session: &str, code: &str| {
        let arguments = json!({ "code": code, "language": "python", "session": session });
        crate::raw::record(&client.run(arguments))
    };
    let first = call("s", "x = 1\nopen('f', 'w').write('kept')");
    assert_eq!(first["status"], "ok", "{first}");
    assert_eq!(first["isolation"]["provider"], "podman", "{first}");
    let facts = call("s", "x += 1\nprint(x, open('f').read())");
    assert_eq!(facts["stdout"], "2 kept\n", "{facts}");
    let fork =
        json!({ "name": "session", "arguments": { "action": "fork", "name": "s", "to": "t" } });
    let forked = client.request("tools/call", fork);
    assert_eq!(forked["result"]["isError"], false, "{forked}");
    let mut call = |session: &str, code: &str| {
        let arguments = json!({ "code": code, "language": "python", "session": session });
        crate::raw::record(&client.run(arguments))
    };
    assert_eq!(call("t", "x += 10; print(x)")["stdout"], "12\n");
    assert_eq!(call("s", "print(x)")["stdout"], "2\n");
}

#[test]
fn calls_at_the_same_time_get_their_own_answers() {
    let Some(hotcell) = podman() else { return };
    let mut client = serve(&hotcell);
    let ids: Vec<(u64, usize)> = (0..6)
        .map(|number| {
            let code = format!("import os\nprint({number}, os.listdir('.'))");
            let files = json!({ format!("f{number}"): "x" });
            let arguments = json!({ "code": code, "language": "python", "files": files });
            let params = json!({ "name": "run", "arguments": arguments });
            (client.post("tools/call", params), number)
        })
        .collect();
    for (id, number) in ids {
        let facts = crate::raw::record(&client.answer(id)["result"]);
        let said = facts["stdout"].as_str().unwrap();
        assert!(said.starts_with(&format!("{number} [")), "{facts}");
        let own = (0..6).filter(|other| said.contains(&format!("'f{other}'")));
        assert_eq!(own.collect::<Vec<_>>(), [number], "{facts}");
    }
}

#[test]
fn auto_takes_the_jail_where_it_is_whole_and_else_a_container() {
    let Some(hotcell) = podman() else { return };
    let whole = hotcell.json(&["--isolation", "auto", "-l", "sh", "-c", "echo 1"]);
    assert_eq!(whole["isolation"]["provider"], "jail", "{whole}");
    // As in a container that masks parts of its /proc: the kernel then lets no other be mounted, and the jail lacks a wall.
    let masked = |isolation: &str| {
        let script = "mount -t tmpfs none /proc/irq && exec \"$@\"";
        let mut command = Command::new("unshare");
        hotcell.dress(&mut command);
        command.args(["--mount", "sh", "-c", script, "sh"]);
        command.arg(hotcell.binary());
        command.args(["run", "--json", "--isolation", isolation]);
        command.args(["-l", "sh", "-c", "echo 1"]);
        Running::start(&mut command).finish().json()
    };
    let jail = masked("jail");
    assert_eq!(
        (&jail["status"], &jail["error"]["kind"]),
        (&json!("rejected"), &json!("denied")),
        "{jail}"
    );
    let auto = masked("auto");
    assert_eq!(auto["isolation"]["provider"], "podman", "{auto}");
    assert_eq!(auto["stdout"], "1\n");
}

#[test]
fn an_engine_that_is_missing_or_complains_is_told_with_what_mends_it() {
    for hotcell in everyone() {
        let started = |path: &str, arguments: &[&str]| {
            let mut command = hotcell.command();
            command.env("PATH", path).arg("run").args(arguments);
            let answer = Running::start(command.stdin(Stdio::null())).finish();
            assert_ne!(answer.code, Some(0));
            answer.err()
        };
        let bin = hotcell.make_folder("engines");
        let path = bin.to_str().unwrap();
        let program = ["-l", "lua", "-c", "print(1)"];
        for engine in ["podman", "docker"] {
            let arguments = [&["--isolation", engine], &program[..]].concat();
            let said = started(path, &arguments);
            assert!(
                said.contains(&format!("`{engine}` was not found")),
                "{said}"
            );
            assert!(said.contains("apt-get install"), "{said}");
        }
        let said = started(
            path,
            &[&["--isolation", "container"], &program[..]].concat(),
        );
        assert!(said.contains("no container engine was found"), "{said}");
        assert!(said.contains("apt-get install podman"), "{said}");
        let file = hotcell.write(
            "engines/docker",
            "#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2\nexit 125\n",
        );
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        let said = started(path, &[&["--isolation", "docker"], &program[..]].concat());
        assert!(
            said.contains("Cannot connect to the Docker daemon"),
            "{said}"
        );
        assert!(said.contains("systemctl start docker"), "{said}");
    }
}

#[test]
fn a_servers_runs_find_containers_in_which_the_interpreter_waits() {
    let Some(hotcell) = podman() else { return };
    let log = hotcell.place("home/log");
    let mut command = hotcell.command();
    command
        .args(["serve", "--isolation", "podman"])
        .env("HOTCELL_LOG", "debug")
        .stderr(fs::File::create(&log).unwrap());
    let mut client = Client::of(command);
    client.begin();
    let pid = client.child.id();
    let mut run = || {
        let code =
            "import os\nprint(os.path.exists('/workspace/left'))\nopen('/workspace/left', 'w')";
        let facts = crate::raw::record(&client.run(json!({ "code": code, "language": "python" })));
        assert_eq!(facts["stdout"], "False\n", "{facts}");
        fs::read_to_string(&log).unwrap()
    };
    run();
    let warm = || {
        assert!(eventually(PATIENCE, || !containers_of(pid).is_empty()));
        run().contains("from=\"the warm pool\"")
    };
    assert!(eventually(PATIENCE, warm));
}

#[test]
fn the_doctor_tests_containers_from_inside() {
    let Some(hotcell) = podman() else { return };
    let doctor = |arguments: &[&str]| {
        let mut command = hotcell.command();
        Running::start(command.args(["doctor", "--json"]).args(arguments)).finish()
    };
    // Not without being asked: engines leave files.
    assert!(doctor(&[]).json().get("engines").is_none());
    let report = doctor(&["--engines"]).json();
    let engines = report["engines"].as_array().unwrap();
    let podman = engines.iter().find(|it| it["name"] == "podman").unwrap();
    assert_eq!(podman["works"], true, "{podman}");
    // What containers share with the host, and nothing that confines.
    let lacking = json!([
        "locks",
        "inotify",
        "private inodes",
        "no new namespaces",
        "private devices"
    ]);
    assert_eq!(podman["lacking"], lacking, "{podman}");
    let report = doctor(&["--isolation", "podman"]).json();
    let checks = report["checks"].as_array().unwrap().iter();
    let failed = checks.filter(|check| check["state"] == "failed");
    let failed: Vec<&str> = failed
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    assert_eq!(failed, ["locks", "inotify", "storage limit"], "{report}");
    // The control: the jail shares no inodes.
    assert_eq!(doctor(&["--isolation", "jail"]).json()["isolation"], "full");
}
