//! `hotcell doctor` on the real binary: on this host as it is, as root and as an
//! ordinary user, and on hosts with one wall less, which a namespace around the
//! binary pretends.

mod place;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use place::{Place, Report, Who, skip};

/// What a program in a sandbox is and can do, and what ends it: the same on every host.
const ALWAYS: [&str; 23] = [
    "user",
    "capabilities",
    "no new privileges",
    "system call filter",
    "open files",
    "environment",
    "init's environment",
    "network",
    "host's loopback",
    "vsock",
    "namespaces",
    "host files",
    "/etc/shadow",
    "locks",
    "/usr",
    "inotify",
    "pipes",
    "uid",
    "memory limit",
    "process limit",
    "time limit",
    "storage limit",
    "open file limit",
];
const WALLS: [&str; 13] = [
    "private root",
    "network namespace",
    "ipc namespace",
    "uts namespace",
    "cgroup namespace",
    "private /proc",
    "private inodes",
    "no new namespaces",
    "private devices",
    "private quotas",
    "seccomp",
    "landlock",
    "control groups",
];

#[test]
fn as_root_every_check_is_in_order() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can see root's view");
    }
    let place = Place::of(Who::Root);
    let report = place.doctor();
    let Some(walls) = missing_walls(&report) else {
        return;
    };
    if !walls.is_empty() {
        return skip(&format!("this host has no {walls:?}"));
    }
    assert_eq!(report.isolation(), "full", "{}", report.text);
    assert_eq!(report.code, Some(0));
    assert_eq!(place.left_behind(), Vec::<PathBuf>::new());
}

#[test]
fn an_ordinary_user_lacks_what_only_root_can_give_and_nothing_else() {
    let place = Place::of(Who::User);
    let report = place.doctor();
    let Some(walls) = missing_walls(&report) else {
        return;
    };
    if !walls.iter().any(|wall| wall == "control groups") {
        return skip("this user has control groups of its own");
    }
    assert_eq!(
        report.isolation(),
        "reduced: private devices, private quotas, control groups",
        "{}",
        report.text
    );
    assert_eq!(report.code, Some(1));
    for wall in ["private devices", "private quotas", "control groups"] {
        assert!(!report.fix_of(wall).is_empty(), "{wall}");
    }
    assert_eq!(place.left_behind(), Vec::<PathBuf>::new());
}

#[test]
fn the_report_as_json_has_the_same_facts() {
    let place = Place::of(Who::User);
    let text = place.doctor();
    let output = place.run("exec \"$HOTCELL\" doctor --json");
    let json: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");

    let checks = json["checks"].as_array().expect("a list of checks");
    let same: Vec<(String, String)> = checks
        .iter()
        .map(|check| {
            let text = |name: &str| check[name].as_str().unwrap_or_default().to_owned();
            (text("name"), text("state"))
        })
        .collect();
    assert_eq!(same, text.lines());
    assert_eq!(output.status.code(), text.code);
    let lacking: Vec<&str> = json["lacking"]
        .as_array()
        .expect("a list of names")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let level = json["isolation"].as_str().unwrap_or_default();
    let expected = [level, &lacking.join(", ")].join(": ");
    assert_eq!(text.isolation(), expected.trim_end_matches(": "));
    for (name, value) in [("kernel", &json["kernel"]), ("filter", &json["filter"])] {
        let value = value.as_str().expect("a fact");
        assert!(text.text.contains(&format!("{name} {value}")), "{name}");
    }
    assert!(json["languages"]["runnable"].is_array());
}

/// The control: what the doctor finds closed in a cell is open outside of one.
#[test]
fn outside_a_cell_the_same_probe_finds_the_doors_open() {
    let place = Place::of(Who::User);
    let canary = place.folder.path().join("canary");
    fs::write(&canary, "to be found").expect("a canary");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let locked = fs::File::open("/usr/bin/env").expect("a file of the host");
    flock(&locked, FlockOperation::LockShared).expect("a lock");
    let question = json!({"facts": {"canary": canary, "listener": address, "locked": ["/usr/bin/env", canary]}});
    fs::write(place.folder.path().join("probe.json"), question.to_string()).expect("a question");

    let output = place
        .command(&place.binary)
        .arg0("/workspace/hotcell-probe")
        .env("TOKEN", "secret")
        .output()
        .expect("the probe can be started");
    let facts: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is a fact"))
        .collect();
    let fact = |name: &str| facts.iter().find_map(|fact| fact.get(name));

    for deed in ["loopback", "read_canary"] {
        let worked = json!({"deed": deed, "errno": null});
        assert!(
            facts.iter().any(|fact| fact["tried"] == worked),
            "{deed}: {facts:?}"
        );
    }
    assert_eq!(fact("locked"), Some(&json!(["/usr/bin/env"])));
    assert_ne!(fact("ids"), Some(&json!([65534, 65534, 65534, 65534])));
    assert_eq!(fact("seccomp_mode"), Some(&json!(0)));
    assert_ne!(fact("capabilities"), Some(&json!([0, 0, 0, 0, 0])));
    let names = fact("environment").and_then(Value::as_array);
    assert!(names.is_some_and(|names| names.contains(&json!("TOKEN"))));
}

/// The control: outside of sandboxes the neighbour's locks are felt on all that it sees, and nothing but a user's own limit bounds what it takes.
#[test]
fn outside_a_cell_the_neighbours_locks_are_felt_on_everything() {
    let place = Place::of(Who::User);
    let question = place.folder.path().join("probe.json");
    let probe = || {
        let mut probe = place.command(&place.binary);
        probe.arg0("/workspace/hotcell-probe");
        probe
    };
    // More than a sandbox may have, and few enough for whoever else is this user.
    let asked = json!({"hoard": {"most": 20}});
    fs::write(&question, asked.to_string()).expect("a question");
    let hoard = probe().stdout(Stdio::piped()).spawn();
    let mut hoard = Ended(hoard.expect("the probe can be started"));
    let mut facts: Vec<Value> = Vec::new();
    for line in BufReader::new(hoard.0.stdout.take().expect("a pipe")).lines() {
        facts.push(serde_json::from_str(&line.expect("a line")).expect("a fact"));
        if facts.last().is_some_and(|fact| fact.get("holds").is_some()) {
            break;
        }
    }
    let fact = |name: &str| facts.iter().find_map(|fact| fact.get(name));
    let held = fact("holds").and_then(Value::as_array).expect("its locks");
    let holds = |path: &str| held.iter().any(|it| it == path);
    assert!(
        holds("/") && holds("/dev/null") && holds("/etc"),
        "{held:?}"
    );
    let instances = fact("took").expect("what it took");
    assert_eq!(instances["quota"], "inotify_instances");
    assert!(instances["count"].as_u64() > Some(8), "{instances}");

    let asked = json!({"facts": {"canary": null, "listener": null, "locked": held}});
    fs::write(&question, asked.to_string()).expect("a question");
    let output = probe().output().expect("the probe can be started");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let said: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is a fact"))
        .collect();
    let felt = said.iter().find_map(|fact| fact.get("locked"));
    let felt = felt.and_then(Value::as_array).expect("what it felt");
    for path in ["/", "/dev/null", "/etc", "/usr", "/usr/bin/env"] {
        assert!(felt.iter().any(|it| it == path), "{path}: {felt:?}");
    }
    assert!(
        felt.len() * 10 > held.len() * 9,
        "{} of {}: {felt:?}",
        felt.len(),
        held.len()
    );
    assert!(matches!(hoard.0.try_wait(), Ok(None)), "it stays");
}

/// A process that ends with this.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_masked_proc_is_named_and_stops_a_run_unless_that_is_allowed() {
    let place = Place::of(Who::User);
    let Some(host) = place.with("mount -t tmpfs none /proc/sys") else {
        return;
    };

    let report = host.doctor();
    assert_eq!(report.code, Some(1), "{}", report.text);
    assert_eq!(report.state_of("private /proc"), "missing");
    let fix = report.fix_of("private /proc");
    assert!(fix.contains("systempaths=unconfined"), "{fix}");
    // They are seen without /proc.
    for name in ["user", "capabilities", "open files", "network"] {
        assert_eq!(report.state_of(name), "ok", "{}", report.text);
    }
    host.refuses_runs_without("private /proc");
}

#[test]
fn a_network_that_cannot_be_had_is_named_and_stops_a_run_unless_that_is_allowed() {
    let place = Place::of(Who::User);
    let Some(host) = place.with("echo 0 > /proc/sys/user/max_net_namespaces") else {
        return;
    };

    let report = host.doctor();
    assert_eq!(report.code, Some(1), "{}", report.text);
    assert_eq!(report.state_of("network namespace"), "missing");
    let fix = report.fix_of("network namespace");
    assert!(fix.contains("user.max_net_namespaces"), "{fix}");
    // The witness: without the wall the cell does reach the host.
    assert_eq!(report.state_of("host's loopback"), "failed");
    let fix = report.fix_of("host's loopback");
    assert!(fix.contains("`network namespace`"), "{fix}");
    host.refuses_runs_without("network namespace");
}

#[test]
fn where_no_cell_can_be_made_the_setting_that_forbids_it_is_named() {
    let place = Place::of(Who::User);
    for kind in ["user", "mnt", "pid"] {
        let setting = format!("/proc/sys/user/max_{kind}_namespaces");
        let Some(host) = place.with(&format!("echo 0 > {setting}")) else {
            return;
        };
        let report = host.doctor();
        assert_eq!(report.code, Some(125), "{}", report.text);
        assert_eq!(report.isolation(), "none: no sandbox can be made");
        assert_eq!(report.state_of("cell"), "failed");
        let fix = report.fix_of("cell");
        let command = format!("`sysctl -w user.max_{kind}_namespaces=");
        assert!(fix.contains(&command), "{fix}");

        let run = host.run("exec \"$HOTCELL\" run --allow-reduced -l sh -c 'echo ran'");
        assert_eq!(run.status.code(), Some(125));
        assert_eq!(run.stdout, b"");
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(
            said.contains("namespace") && said.contains("hint: "),
            "{said}"
        );
    }
}

/// The walls that are not there, after a look that everything else is in order.
/// `None` on a host that can build no cell at all.
fn missing_walls(report: &Report) -> Option<Vec<String>> {
    if report.code == Some(125) {
        skip(&report.text);
        return None;
    }
    let lines = report.lines();
    let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [&ALWAYS[..], &WALLS[..]].concat(), "{}", report.text);
    for name in ALWAYS {
        assert_eq!(report.state_of(name), "ok", "{}", report.text);
    }
    let missing = lines.into_iter().filter(|(_, state)| state != "ok");
    Some(missing.map(|(name, _)| name).collect())
}
