//! hotcell itself in a container, with the settings of `deploy/`.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{own_image, podman};
use crate::support::{Answer, Hotcell, Running, everyone};

/// An image with hotcell in it needs no more than this: the host's /usr below it, and the binary.
fn in_deployed(hotcell: &Hotcell, options: &[&str]) -> Answer {
    let image = own_image();
    let mut command = Command::new("podman");
    hotcell.dress(&mut command);
    command.args(["run", "--rm", "--network=none", "--volume=/usr:/usr:ro"]);
    command.args(["--ulimit=nofile=1024:1024", "--ulimit=nproc=1000:1000"]);
    // As hotcell itself does: crun wants cgroups of one kind.
    if std::path::Path::new("/usr/sbin/runc").exists() {
        command.arg("--runtime=runc");
    }
    command.arg(format!(
        "--volume={}:/opt/hotcell:ro",
        hotcell.binary().display()
    ));
    command
        .args(options)
        .args([&image, "/opt/hotcell", "doctor", "--json"]);
    Running::start(&mut command).finish()
}

#[test]
fn with_the_settings_of_deploy_hotcell_has_its_walls_in_a_container() {
    let Some(hotcell) = podman() else { return };
    let readme = fs::read_to_string("deploy/README.md").expect("the tests start in the repository");
    let line = readme
        .lines()
        .skip_while(|it| !it.contains("podman run -i"));
    let line: Vec<&str> = line.take(3).collect();
    let line = line.join(" ");
    let options = line.split_whitespace().filter(|it| it.starts_with("--"));
    let seccomp = fs::canonicalize("deploy/seccomp.json").unwrap();
    let options: Vec<String> = options
        .filter(|it| *it != "--rm")
        .map(|it| it.replace("deploy/seccomp.json", seccomp.to_str().unwrap()))
        .chain(["--env=HOME=/tmp".to_owned()])
        .collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    assert!(options.len() >= 8, "{options:?}");
    let report = in_deployed(&hotcell, &options).json();
    // What root alone can give, and what an engine under cgroup v1 does not.
    let expected = json!(["private devices", "private quotas", "control groups"]);
    assert_eq!(report["lacking"], expected, "{report}");
    // The control: each of the two is needed.
    let without = |what: &str| {
        let options: Vec<&str> = options
            .iter()
            .copied()
            .filter(|it| !it.contains(what))
            .collect();
        in_deployed(&hotcell, &options).json()
    };
    let masked = without("unmask");
    let lacking = masked["lacking"].as_array().unwrap();
    assert!(lacking.contains(&json!("private /proc")), "{masked}");
    assert_eq!(without("seccomp")["isolation"], "none");
}

#[test]
fn a_client_is_given_the_command_that_starts_hotcell_in_a_container() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let install = |arguments: &[&str]| {
        let mut command = hotcell.command();
        let words = [&["install", "cursor"], arguments].concat();
        Running::start(command.args(words)).finish()
    };
    let answer = install(&["--container=podman", "--image", "localhost/own:1"]);
    assert_eq!(answer.code, Some(0), "{}", answer.err());
    let file = fs::read_to_string(hotcell.home().join(".cursor/mcp.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let entry = &file["mcpServers"]["hotcell"];
    assert_eq!(entry["command"], "podman");
    let words = entry["args"].as_array().unwrap();
    let place = |word: &str| words.iter().position(|it| it == word).expect(word);
    for option in [
        "--cap-drop=ALL",
        "--security-opt=unmask=ALL",
        "--interactive",
        "--rm",
    ] {
        assert!(place(option) < place("localhost/own:1"), "{entry}");
    }
    assert_eq!(words.last().unwrap(), "serve");
    assert_ne!(install(&["--container", "--http"]).code, Some(0));
}
