//! Controls of the witness: it is shown what a run could leave.

use std::io::Read;
use std::process::{Command, Stdio};

use super::*;

#[test]
fn the_witness_sees_what_a_run_could_leave() {
    // A mount: a process with one more than we have.
    let mut child = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .arg("mount -t tmpfs witness /tmp && echo ready && exec sleep 60")
        .env(MARK, "witnessed")
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare can be started");
    let mut line = [0; 6];
    let ready = child
        .stdout
        .take()
        .expect("a pipe")
        .read_exact(&mut line)
        .is_ok();
    let mounts = mounts(&child.id().to_string());
    // A process: that one, by its environment.
    let traces = Traces {
        server: u32::MAX,
        mark: "witnessed".to_owned(),
        ..Traces::default()
    };
    let survivors = traces.survivors();
    let _ = child.kill();
    let _ = child.wait();
    assert!(ready, "a mount could be made");
    assert!(
        mounts.iter().any(|line| line.contains("witness")),
        "{mounts:?}"
    );
    assert_eq!(survivors.len(), 1, "{survivors:?}");
    assert!(settled(Duration::from_secs(5), || traces.survivors()).is_empty());

    // A control group, where we may make one.
    let name = format!("hotcell-4026531836-{}-1.0", u32::MAX);
    let places =
        ["pids", "unified", "."].map(|place| Path::new("/sys/fs/cgroup").join(place).join(&name));
    if let Some(group) = places.iter().find(|place| fs::create_dir(place).is_ok()) {
        let found = traces.groups();
        fs::remove_dir(group).expect("an empty group can be removed");
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
