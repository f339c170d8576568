//! A Podman that has its containers in a virtual machine: a program in front of the real one that wants `podman machine` first. And engines that
//! do not see a folder, or are missing.

use std::fs;

use serde_json::{Value, json};

use super::{PATIENCE, podman};
use crate::mcp::client::Client;
use crate::support::isolation::CONFIG;
use crate::support::{Answer, Hotcell, PATH, Running, eventually, everyone, open_to_all};

const CANNOT: &str = "Error: Cannot connect to Podman. Please verify your connection to the Linux system using `podman system connection list`, \
    or try `podman machine init` and `podman machine start` to manage a new Linux VM";

/// Puts `script` in front of an engine of this name; the PATH that finds it.
fn in_front(hotcell: &Hotcell, name: &str, script: &str) -> String {
    let file = hotcell.write(&format!("engines/{name}"), format!("#!/bin/sh\n{script}"));
    open_to_all(&file);
    format!("{}:{PATH}", file.parent().unwrap().display())
}

/// A machine that does not exist, has noise to say, and is the real Podman once it runs. What it was asked for is in `machine/calls`.
fn with_machine(hotcell: &Hotcell, start: &str) -> String {
    let machine = hotcell.make_folder("machine");
    let script = format!(
        "cd {}\necho \"$1 $2\" >>calls\n\
        case \"$1 $2\" in\n\
        'machine init') touch made; exit ;;\n\
        'machine start') [ -e made ] || {{ echo 'Error: podman-machine-default: VM does not exist' >&2; exit 125; }}; {start} ;;\n\
        'machine stop') rm on; exit ;;\n\
        esac\n\
        [ -e on ] || {{ echo '{CANNOT}' >&2; exit 125; }}\n\
        echo 'Trying to pull localhost/hotcell-host...' >&2\necho 'Writing manifest to image destination' >&2\n\
        exec /usr/bin/podman \"$@\"\n",
        machine.display()
    );
    in_front(hotcell, "podman", &script)
}

fn asked(hotcell: &Hotcell) -> Vec<String> {
    let calls = fs::read_to_string(hotcell.place("machine/calls")).unwrap();
    let calls = calls.lines().filter(|it| it.starts_with("machine"));
    calls.map(str::to_owned).collect()
}

fn run(hotcell: &Hotcell, path: &str, isolation: &str) -> Answer {
    let mut command = hotcell.command();
    command.env("PATH", path);
    command.args(["run", "--isolation", isolation, "-l", "sh", "-c", "echo 1"]);
    Running::start(&mut command).finish()
}

#[test]
fn c4_a_podman_machine_is_made_started_and_stopped_when_nothing_runs() {
    let Some(hotcell) = podman() else { return };
    let path = with_machine(&hotcell, "touch on; exit");
    let answer = run(&hotcell, &path, "podman");
    // Nothing of what the engine has said is the program's.
    assert_eq!((answer.out(), answer.err()), ("1\n".into(), String::new()));
    let made = ["machine start", "machine init", "machine start"];
    assert_eq!(asked(&hotcell), made);
    // The control: a machine that runs is left alone.
    assert_eq!(run(&hotcell, &path, "podman").out(), "1\n");
    assert_eq!(asked(&hotcell), made);

    fs::remove_file(hotcell.place("machine/on")).unwrap();
    hotcell.write(CONFIG, "[container]\nmachine_idle = \"2s\"\n");
    let mut command = hotcell.command();
    command.args(["serve", "--isolation", "podman", "--pool", "0"]);
    let mut client = Client::of({
        command.env("PATH", &path);
        command
    });
    client.begin();
    let on = || hotcell.place("machine/on").exists();
    let mut run = |code: &str| {
        let ran = client.run(json!({ "code": code, "language": "sh" }));
        crate::raw::record(&ran)
    };
    // It outlasts a program that takes longer than the machine may be idle.
    assert_eq!(run("sleep 4; echo 1")["stdout"], "1\n");
    assert!(on());
    assert!(eventually(PATIENCE, || !on()));
    assert_eq!(run("echo 2")["stdout"], "2\n");
    assert!(on());
}

/// The answer of `run_python`, with these engines.
fn run_python(hotcell: &Hotcell, path: &str, engine: &str) -> Value {
    let mut command = hotcell.command();
    command.args(["serve", "--as", "code-execution-mode", "--pool", "0"]);
    command.env("PATH", path).env("MCP_BRIDGE_RUNTIME", engine);
    let mut client = Client::of(command);
    client.begin();
    let call = json!({ "name": "run_python", "arguments": { "code": "print(1)" } });
    client.request("tools/call", call)["result"]["structuredContent"].clone()
}

#[test]
fn c3_c4_an_engine_that_is_missing_or_fails_is_told_in_the_words_of_code_execution_mode() {
    for hotcell in everyone() {
        let says = |path: &str, engine: &str| {
            let said = run_python(&hotcell, path, engine);
            assert_eq!(said["status"], "error", "{said}");
            said["error"].as_str().unwrap().to_owned()
        };
        let empty = hotcell.make_folder("none");
        let python = empty.join("python3");
        std::os::unix::fs::symlink("/usr/bin/python3", python).unwrap();
        let said = says(empty.to_str().unwrap(), "podman");
        assert!(
            said.starts_with("No container runtime found. Install podman or"),
            "{said}"
        );
        let path = with_machine(&hotcell, "echo 'Error: no kvm' >&2; exit 125");
        let said = says(&path, "podman");
        assert!(said.starts_with("Failed to start Podman machine"), "{said}");
        assert!(said.contains("no kvm"), "{said}");
        let path = in_front(&hotcell, "docker", "echo 'docker: gone' >&2\nexit 125\n");
        let said = says(&path, "docker");
        assert!(
            said.starts_with("Container runtime is unavailable"),
            "{said}"
        );
    }
}

#[test]
fn p33_the_folder_is_named_that_an_engine_in_a_machine_does_not_see() {
    for hotcell in everyone() {
        let script = "echo 'docker: Error response from daemon: Mounts denied: ' >&2\n\
            echo 'The path /usr is not shared from the host and is not known to Docker.' >&2\n\
            echo 'You can configure shared paths from Docker -> Preferences... -> Resources -> File Sharing.' >&2\nexit 125\n";
        let path = in_front(&hotcell, "docker", script);
        let answer = run(&hotcell, &path, "docker");
        assert_ne!(answer.code, Some(0));
        assert!(
            answer.err().contains("Share /usr with the machine"),
            "{}",
            answer.err()
        );
        // The control: hotcell's own sandbox needs no sharing.
        let own = run(&hotcell, &path, "jail");
        assert_eq!(own.out(), "1\n", "{}", own.err());
    }
}

#[test]
fn c2_the_plan_of_a_program_has_the_flags_of_its_container() {
    for hotcell in everyone() {
        let path = in_front(&hotcell, "podman", "exit 1\n");
        let plan = |arguments: &[&str]| {
            let mut command = hotcell.command();
            command.env("PATH", &path).args(["run", "--plan"]);
            command.args(arguments).args(["-l", "sh", "-c", "echo 1"]);
            Running::start(&mut command).finish().json()
        };
        let flags = ["--isolation", "podman", "--memory", "64m", "--pids", "100"];
        let shown = plan(&flags);
        let words = shown["container"].as_array().expect("a command");
        assert!(words[0].as_str().unwrap().ends_with("/podman"), "{shown}");
        for flag in [
            "run",
            "--rm",
            "--pull=never",
            "--network=none",
            "--read-only",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
            "--pids-limit=101",
            "--memory=67108864",
        ] {
            assert!(words.contains(&json!(flag)), "{flag}: {shown}");
        }
        let user = match hotcell.uid {
            0 => "--user=UID:UID",
            _ => "--user=65534:65534",
        };
        assert!(words.contains(&json!(user)), "{shown}");
        // The control: another sandbox has no such command.
        assert_eq!(plan(&[]).get("container"), None);
    }
}

#[test]
fn a_container_has_the_user_that_its_owner_names() {
    let Some(hotcell) = podman() else { return };
    let who = || {
        let arguments = [
            "--isolation",
            "podman",
            "-l",
            "sh",
            "-c",
            "id -u; id -g; echo x >f; cat f",
        ];
        hotcell.run(&arguments)
    };
    hotcell.write(CONFIG, "[container]\nuser = \"4321:1234\"\n");
    assert_eq!(who().out(), "4321\n1234\nx\n", "{}", who().err());
    hotcell.write(CONFIG, "");
    assert_ne!(who().out(), "4321\n1234\nx\n", "the control");
    hotcell.write(CONFIG, "[container]\nuser = \"0:0\"\n");
    assert!(who().err().contains("neither of them 0"), "{}", who().err());
}
