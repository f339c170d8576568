//! What runs left on the host: processes, mounts, control groups, files.
//!
//! Tests run side by side, so everything is looked for by a mark of its own: the path
//! of the binary, the user, a variable in the program's environment, the server's pid.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Hotcell, eventually};

/// What a busy machine may need to clear up. A program that was not ended lives longer.
const SOON: Duration = Duration::from_secs(10);

/// The uids that a root server gives to cells.
const CELLS: std::ops::Range<u32> = 0x7000_0000..0x7004_0000;

/// How the host was before.
pub struct Before<'a> {
    hotcell: &'a Hotcell,
    mounts: BTreeSet<String>,
}

impl<'a> Before<'a> {
    pub fn look(hotcell: &'a Hotcell) -> Self {
        let mounts = mounts();
        Self { hotcell, mounts }
    }

    /// Waits until nothing of the server `pid` is left, and fails if something stays.
    pub fn expect_nothing_left(&self, pid: u32) {
        let mut left = Vec::new();
        let gone = eventually(SOON, || {
            left = self.left(pid);
            left.is_empty()
        });
        assert!(gone, "as {}: {}", self.hotcell.name, left.join("\n"));
    }

    fn left(&self, pid: u32) -> Vec<String> {
        let name = |kind: &str, what: String| format!("{kind} {what} is left");
        let mut left = Vec::new();
        left.extend(
            processes(self.hotcell)
                .into_iter()
                .map(|pid| name("process", pid)),
        );
        left.extend(groups(pid).into_iter().map(|group| name("group", group)));
        left.extend(
            files(self.hotcell)
                .into_iter()
                .map(|file| name("file", file)),
        );
        let new = mounts()
            .difference(&self.mounts)
            .cloned()
            .collect::<Vec<_>>();
        left.extend(new.into_iter().map(|mount| name("mount", mount)));
        left
    }
}

/// The argument that marks a run's program as `hotcell`'s.
pub fn mark(hotcell: &Hotcell) -> String {
    format!("--env={}", variable(hotcell))
}

/// A server's spawner: its child in a user namespace of its own. Until it has one it is
/// known by being alone, since the sweeper is cloned from it.
pub fn spawner(server: u32) -> Option<u32> {
    let namespace = |pid: &str, kind: &str| fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok();
    let is_helper = |pid: &u32| {
        let name = pid.to_string();
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        // A cell's init has the same name, but sees no process of the host.
        line.starts_with(b"hotcell-spawner")
            && namespace(&name, "pid") == namespace("self", "pid")
            && parent(*pid) == Some(server)
            && !is_zombie(*pid)
    };
    let helpers: Vec<u32> = pids().filter(is_helper).collect();
    let apart = |pid: &&u32| namespace(&pid.to_string(), "user") != namespace("self", "user");
    match helpers[..] {
        [only] => Some(only),
        _ => helpers.iter().find(apart).copied(),
    }
}

/// The live children of a process.
pub fn children(of: u32) -> Vec<u32> {
    pids()
        .filter(|pid| parent(*pid) == Some(of) && !is_zombie(*pid))
        .collect()
}

/// Whether a process waits for something, and does nothing.
pub fn is_asleep(pid: u32) -> bool {
    stat(pid).is_some_and(|fields| fields.starts_with('S'))
}

/// What a process calls itself in its first argument.
pub fn name(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let first = line.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(first).into_owned()
}

/// Whether a process is in another namespace of this kind than we are.
pub fn is_apart(pid: u32, kind: &str) -> bool {
    let of = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok();
    of(&pid.to_string()).is_some_and(|it| Some(it) != of("self"))
}

/// The control groups of a server.
pub fn groups(server: u32) -> Vec<String> {
    let mut found = Vec::new();
    walk(Path::new("/sys/fs/cgroup"), &mut |folder| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let mut parts = name.split(['-', '.']);
        // hotcell-<pid namespace>-<pid>-<start>[.<slot>]
        if parts.next() == Some("hotcell") && parts.nth(1) == Some(&server.to_string()) {
            found.push(folder.display().to_string());
        }
    });
    found
}

/// The live processes that are this one's: by its binary, its mark or its user.
pub fn processes(hotcell: &Hotcell) -> Vec<String> {
    let made_up = is_made_up(hotcell);
    let mark = variable(hotcell);
    let is_ours = |pid: &u32| {
        let folder = Path::new("/proc").join(pid.to_string());
        let of = |file: &str| folder.join(file);
        let has_mark = |environment: Vec<u8>| {
            let mut variables = environment.split(|byte| *byte == 0);
            variables.any(|variable| variable == mark.as_bytes())
        };
        let binary = hotcell.binary();
        // What was deleted has a word behind its path.
        let is_binary = |exe: PathBuf| {
            let path = binary.as_os_str().as_bytes();
            exe.as_os_str().as_bytes().starts_with(path)
        };
        let is_users = fs::metadata(&folder).is_ok_and(|found| found.uid() == hotcell.uid);
        fs::read_link(of("exe")).is_ok_and(is_binary)
            || fs::read(of("environ")).is_ok_and(has_mark)
            || made_up && is_users
    };
    let live = pids().filter(|pid| is_ours(pid) && !is_zombie(*pid));
    let shown = |pid: u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        format!(
            "{pid} {}",
            String::from_utf8_lossy(&line).replace('\0', " ")
        )
    };
    live.map(shown).collect()
}

/// Files that only a run can have made.
fn files(hotcell: &Hotcell) -> Vec<String> {
    let made_up = is_made_up(hotcell);
    let mut found = Vec::new();
    let mut see = |path: &Path| found.push(path.display().to_string());
    for entry in entries(&hotcell.temporary()) {
        see(&entry);
    }
    for folder in ["/tmp", "/var/tmp", "/dev/shm", "/run"] {
        for entry in entries(Path::new(folder)) {
            let Ok(uid) = fs::symlink_metadata(&entry).map(|found| found.uid()) else {
                continue;
            };
            if CELLS.contains(&uid) || made_up && uid == hotcell.uid {
                see(&entry);
            }
        }
    }
    found
}

fn mounts() -> BTreeSet<String> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let lines = text.lines().filter(|line| !is_of_others(line));
    lines.map(str::to_owned).collect()
}

/// Whether it is a mount of a container, as Podman has them, or of a root that is being installed: other tests, and other work
/// on this machine, come and go meanwhile.
pub fn is_of_others(mount: &str) -> bool {
    [
        "/containers/storage/",
        "/run/containers/",
        "/run/netns/",
        "/tmp/mmdebstrap.",
    ]
    .iter()
    .any(|part| mount.contains(part))
}

/// Whether the user exists for this one alone, so that all that is theirs counts.
fn is_made_up(hotcell: &Hotcell) -> bool {
    rustix::process::getuid().is_root() && hotcell.uid != 0
}

fn variable(hotcell: &Hotcell) -> String {
    format!("HOTCELL_MARK={}", hotcell.place("").display())
}

fn pids() -> impl Iterator<Item = u32> {
    let names = entries(Path::new("/proc")).into_iter();
    names.filter_map(|path| path.file_name()?.to_str()?.parse().ok())
}

fn parent(pid: u32) -> Option<u32> {
    let fields = stat(pid)?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// It holds nothing but its number until its parent looks.
fn is_zombie(pid: u32) -> bool {
    stat(pid).is_none_or(|fields| fields.starts_with(['Z', 'X']))
}

/// What follows the name in a process's `stat`: state, parent, ...
fn stat(pid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(')')?.1.trim_start().to_owned())
}

fn walk(folder: &Path, see: &mut dyn FnMut(&Path)) {
    for entry in entries(folder) {
        if fs::symlink_metadata(&entry).is_ok_and(|found| found.is_dir()) {
            see(&entry);
            walk(&entry, see);
        }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
