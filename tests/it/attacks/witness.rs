//! The witness outside: what a run left on the host. It looks for processes by three
//! marks (a variable in their environment, the path of the binary, being the first of
//! a cell), since a survivor may have lost any one of them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The variable every program of the suite is given, to be known again by.
pub const MARK: &str = "SBX_RUN";

/// What a run can be recognised by.
#[derive(Debug, Clone, Default)]
pub struct Traces {
    /// The server's process id.
    pub server: u32,
    /// The value of [`MARK`] in its program's environment.
    pub mark: String,
    /// The path its binary was started from; no other run uses it.
    pub binary: PathBuf,
    /// Where its `TMPDIR` points; no other run is given the same.
    pub temporary: PathBuf,
    /// Processes below the server in a pid namespace of their own, by pid and start time: the first processes of cells. Nothing in a cell
    /// can outlive them. In a container, the first of the namespace that a process with the mark is in.
    pub cells: BTreeSet<(String, String)>,
    /// The processor time of all processes below the server, as last seen.
    pub processor: Duration,
    /// What the run was known by while it lived: shows that the marks are right.
    pub known: BTreeSet<&'static str>,
    pub measured: Option<Instant>,
    /// Whether its cells are made by somebody else, and are nobody's children that we know.
    pub is_within: bool,
}

impl Traces {
    /// Notes the server's cells and what they cost. Call it often: a short run is gone
    /// soon.
    pub fn observe(&mut self) {
        let ours = namespace("self");
        let is_elsewhere = |pid: &str| namespace(pid).is_some_and(|it| Some(it) != ours);
        let server = self.server.to_string();
        let mut children = children(&server);
        if self.is_within {
            // `runsc` is ours, and its kernel is below it.
            children.extend(children.clone().iter().flat_map(|it| self::children(it)));
        }
        for child in &children {
            if is_elsewhere(child) {
                self.cells.insert((child.clone(), stat(child, START)));
            }
        }
        // A fork bomb is a large tree to walk.
        if self
            .measured
            .is_none_or(|last| last.elapsed() > Duration::from_millis(100))
        {
            let marks: Vec<_> = processes()
                .filter_map(|pid| self.knows(&pid).map(|mark| (pid, mark)))
                .collect();
            let marked = marks.iter().filter(|(_, mark)| *mark == "environment");
            let marked = marked.filter(|(pid, _)| self.is_within && is_elsewhere(pid));
            let firsts: Vec<String> = marked.filter_map(|(pid, _)| first_beside(pid)).collect();
            let first = |pid: String| (pid.clone(), stat(&pid, START));
            self.cells.extend(firsts.into_iter().map(first));
            self.known.extend(marks.iter().map(|(_, mark)| mark));
            let cells = self.cells.iter().map(|(pid, _)| pid);
            let all: BTreeSet<&String> = children.iter().chain(cells).collect();
            let all = all
                .into_iter()
                .filter(|it| !self.is_within || is_elsewhere(it));
            let below: Duration = all.map(|child| processor_time(child)).sum();
            self.processor = self.processor.max(below);
            self.known
                .extend((!self.groups().is_empty()).then_some("control group"));
            self.measured = Some(Instant::now());
        }
    }

    /// The processes of this run that still live, each with the mark it was known by.
    pub fn survivors(&self) -> Vec<String> {
        processes()
            .filter_map(|pid| {
                self.knows(&pid)
                    .map(|mark| format!("process {pid} survived ({mark})"))
            })
            .collect()
    }

    /// The control groups of this run's server that still exist: folders with our name
    /// and the server's pid in theirs.
    pub fn groups(&self) -> Vec<String> {
        let server = self.server.to_string();
        let mut found = Vec::new();
        walk(Path::new("/sys/fs/cgroup"), &mut |path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let mut parts = name.split(['-', '.']);
            if parts.next() == Some("hotcell") && parts.any(|part| part == server) {
                found.push(format!("control group {} is left", path.display()));
            }
        });
        found
    }

    /// The temporary files of this run.
    pub fn files(&self) -> Vec<String> {
        let left = files(&self.temporary);
        left.iter()
            .map(|path| format!("temporary file {} is left", path.display()))
            .collect()
    }

    fn knows(&self, pid: &str) -> Option<&'static str> {
        if zombie(pid) {
            return None;
        }
        let directory = Path::new("/proc").join(pid);
        let environment = fs::read(directory.join("environ")).unwrap_or_default();
        let mark = format!("{MARK}={}", self.mark);
        if !self.mark.is_empty()
            && environment
                .split(|byte| *byte == 0)
                .any(|pair| pair == mark.as_bytes())
        {
            return Some("environment");
        }
        let binary = fs::read_link(directory.join("exe")).unwrap_or_default();
        // Once its file is gone the kernel adds " (deleted)" to the path.
        let binary = binary.as_os_str().as_bytes();
        let binary = binary.strip_suffix(b" (deleted)").unwrap_or(binary);
        if !binary.is_empty() && binary == self.binary.as_os_str().as_bytes() {
            return Some("binary");
        }
        let process = (pid.to_owned(), stat(pid, START));
        self.cells.contains(&process).then_some("first of a cell")
    }
}

/// The mounts a process sees, one line each.
pub fn mounts(process: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(format!("/proc/{process}/mountinfo")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Entries of the shared temporary places that a run could have made: those of the
/// user `uid`, or, where that says nothing because it is root, those with our name.
pub fn temporary(uid: u32) -> BTreeSet<PathBuf> {
    let places = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/dev/mqueue"];
    let entries = places
        .iter()
        .filter_map(|place| fs::read_dir(place).ok())
        .flatten()
        .flatten();
    let ours = entries.filter(|entry| match uid {
        0 => entry.file_name().to_string_lossy().contains("hotcell"),
        _ => fs::symlink_metadata(entry.path()).is_ok_and(|meta| meta.uid() == uid),
    });
    ours.map(|entry| entry.path()).collect()
}

/// Every file below `directory`, which may be large or gone.
pub fn files(directory: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    walk(directory, &mut |path| {
        found.insert(path.to_owned());
    });
    found
}

/// The processes of a user.
pub fn processes_of(uid: u32) -> Vec<String> {
    let owned = |pid: &String| {
        let owner = fs::metadata(Path::new("/proc").join(pid)).map(|meta| meta.uid());
        owner.is_ok_and(|owner| owner == uid) && !zombie(pid)
    };
    processes().filter(owned).collect()
}

/// A line of `/proc/meminfo`, in KiB.
pub fn memory(line: &str) -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let found = text
        .lines()
        .find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
    found
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Asks until nothing is found or `limit` is over, and gives the last answer: what
/// happens behind the answer of a run needs a moment, and has no event to wait for.
pub fn settled(limit: Duration, look: impl Fn() -> Vec<String>) -> Vec<String> {
    let end = Instant::now() + limit;
    loop {
        let found = look();
        if found.is_empty() || Instant::now() >= end {
            return found;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn processes() -> impl Iterator<Item = String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

fn children(pid: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect()
}

/// User and system time of a process and all below it: fields 14 to 17 of `stat`, in
/// hundredths of a second.
fn processor_time(pid: &str) -> Duration {
    let ticks = (14..=17).filter_map(|field| stat(pid, field).parse::<u64>().ok());
    let below: Duration = children(pid)
        .iter()
        .map(|child| processor_time(child))
        .sum();
    Duration::from_millis(ticks.sum::<u64>() * 10) + below
}

/// The first process of the pid namespace that this one is in.
fn first_beside(pid: &str) -> Option<String> {
    let own = namespace(pid)?;
    let is_first = |other: &String| {
        let status = fs::read_to_string(format!("/proc/{other}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        numbers.is_some_and(|it| it.split_whitespace().last() == Some("1"))
            && namespace(other).as_ref() == Some(&own)
    };
    processes().find(is_first)
}

fn namespace(process: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/pid")).ok()
}

/// A zombie holds nothing but its number until its parent looks.
fn zombie(pid: &str) -> bool {
    ["Z", "X"].contains(&stat(pid, 3).as_str())
}

/// When a process was started, as a field of `stat`.
const START: usize = 22;

/// A field of `/proc/<pid>/stat` by its number, from 3 on: the name before may hold
/// anything.
fn stat(pid: &str, field: usize) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = text.rsplit(')').next().unwrap_or_default();
    rest.split_whitespace()
        .nth(field - 3)
        .unwrap_or_default()
        .to_owned()
}

fn walk(directory: &Path, see: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        see(&entry.path());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&entry.path(), see);
        }
    }
}

#[cfg(test)]
mod tests;
