//! Asking the user's systemd for a cgroup of our own.
//!
//! A login session's cgroup belongs to root, a desktop's terminal has its shell
//! in it; neither can be divided. A transient scope with `Delegate=yes` can: it
//! moves this one process and leaves the session where it is.

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use std::{env, io};

use super::owner::Owner;
use super::sweep::until;
use super::text;

/// How long systemd may take to answer, and then to move us. A user's first call
/// starts the bus too, which a slow machine needs more than a second for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Has this process moved into a scope of its own.
pub fn enter(owner: &Owner) -> Result<(), String> {
    let Some(runtime) = runtime_directory() else {
        return Err("no systemd user instance runs for this user".to_owned());
    };
    let unit = format!("{}.scope", owner.name());
    let mut child = Command::new("busctl")
        .env("XDG_RUNTIME_DIR", runtime)
        .args(arguments(&unit, owner.pid))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("busctl did not start: {error}"))?;
    match finish(&mut child) {
        Some(status) if status.success() => {}
        Some(_) => return Err("its user instance refused a transient scope".to_owned()),
        None => return Err("its user instance did not answer in time".to_owned()),
    }
    // The answer names a job; we are moved when it is done.
    let moved = until(PATIENCE, || {
        text("/proc/self/cgroup").is_ok_and(|groups| groups.contains(&unit))
    });
    moved
        .then_some(())
        .ok_or_else(|| "it did not move us in time".to_owned())
}

fn arguments(unit: &str, pid: u32) -> Vec<String> {
    let call = "--user --timeout=3 call org.freedesktop.systemd1 /org/freedesktop/systemd1 \
                org.freedesktop.systemd1.Manager StartTransientUnit ssa(sv)a(sa(sv))";
    // A scope that failed is to vanish too, not to stay and be listed.
    let properties = "3 Delegate b true CollectMode s inactive-or-failed PIDs au 1";
    let words = format!("{call} {unit} fail {properties} {pid} 0");
    words.split_ascii_whitespace().map(str::to_owned).collect()
}

/// Where the user's bus is, if there is one. `sudo -u` and cron do not set the variable.
fn runtime_directory() -> Option<PathBuf> {
    let usual = || PathBuf::from(format!("/run/user/{}", rustix::process::getuid().as_raw()));
    let directory = env::var_os("XDG_RUNTIME_DIR").map_or_else(usual, PathBuf::from);
    let (bus, systemd) = (directory.join("bus"), directory.join("systemd"));
    (bus.exists() && systemd.exists()).then_some(directory)
}

/// Waits for `child`, and ends it if it takes too long.
fn finish(child: &mut Child) -> Option<ExitStatus> {
    let mut status: io::Result<Option<ExitStatus>> = Ok(None);
    until(PATIENCE, || {
        status = child.try_wait();
        !matches!(status, Ok(None))
    });
    if let Ok(Some(status)) = status {
        return Some(status);
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}
