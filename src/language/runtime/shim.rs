//! Asking a version manager's shim for the program behind it, and remembering
//! the answer: pyenv's takes a tenth of a second.
//!
//! The shim is the user's own program and runs as the user, outside any cell.
//! Its answer is bounded, and checked as if the user had typed it.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use rustix::process::{Pid, Signal, kill_process_group};

use super::cache::{modified, now, recall, remember};
use super::{Surroundings, is_executable, is_script};

const PATIENCE: Duration = Duration::from_secs(5);
/// More than any path, and more than we would show of a complaint.
const MOST_OUTPUT: usize = 8 << 10;

/// The real program behind `shim`, from the cache or by running `shim locate...`; or why not.
///
/// `inside` is the program below what the shim prints, if that is a folder.
pub fn ask(
    shim: &Path,
    locate: &[String],
    inside: Option<&str>,
    around: &Surroundings,
) -> Result<PathBuf, String> {
    let cache = around
        .cache
        .as_ref()
        .map(|folder| folder.join("runtimes.json"));
    let state = state(shim, locate, around);
    if let Some(path) = cache
        .as_deref()
        .and_then(|file| recall(file, shim, &state, now()))
    {
        return Ok(path);
    }
    let said = run(shim, locate, around, PATIENCE)?;
    let path = answer(&said, inside)?;
    if let Some(file) = cache {
        remember(&file, shim, &state, &path);
    }
    Ok(path)
}

/// Everything an answer depends on, as text to compare.
///
/// Beside the shim itself that is where managers keep the global choice: pyenv,
/// rbenv and nodenv in `version` beside `shims`, asdf and mise in the home.
fn state(shim: &Path, locate: &[String], around: &Surroundings) -> String {
    let home = |name: &str| around.home.as_ref().map(|home| home.join(name));
    let root = shim.parent().and_then(Path::parent);
    let files = [
        Some(shim.to_owned()),
        root.map(|root| root.join("version")),
        home(".tool-versions"),
        home(".config/mise/config.toml"),
    ];
    let times: Vec<_> = files.iter().flatten().map(|file| modified(file)).collect();
    format!("{times:?} {locate:?} {:?}", around.versions)
}

/// Runs one of the user's own programs and returns its stdout and stderr.
pub fn run(
    shim: &Path,
    locate: &[String],
    around: &Surroundings,
    patience: Duration,
) -> Result<[Vec<u8>; 2], String> {
    // In `/`, since a `.python-version` of the folder we were started in must
    // not choose what runs. In a group of its own, so that all of it can be ended.
    let mut child = Command::new(shim)
        .args(locate)
        .env("PATH", &around.path)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("it did not start: {error}"))?;
    let said = listen(&mut child, Instant::now() + patience);
    // Not reaped yet, so the number is still this group's.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let _ = child.wait();
    said
}

/// Reads both streams to their end, the deadline, or more than a path.
fn listen(child: &mut Child, deadline: Instant) -> Result<[Vec<u8>; 2], String> {
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("it has no output".to_owned());
    };
    let streams = [OwnedFd::from(stdout), OwnedFd::from(stderr)];
    let mut said = [Vec::new(), Vec::new()];
    let mut open = vec![0, 1];
    while !open.is_empty() && said[0].len() < MOST_OUTPUT {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("it did not answer in time".to_owned());
        }
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        // Only the open ones: a closed pipe would be ready for ever.
        let watch = |at: &usize| PollFd::new(&streams[*at], PollFlags::IN);
        let mut polled: Vec<PollFd<'_>> = open.iter().map(watch).collect();
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.to_string()),
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let ready: Vec<bool> = polled.iter().map(is_ready).collect();
        for (at, _) in open
            .clone()
            .into_iter()
            .zip(ready)
            .filter(|(_, ready)| *ready)
        {
            let mut bytes = [0; 4096];
            let count = read(&streams[at], &mut bytes).map_err(|error| error.to_string())?;
            if count == 0 {
                open.retain(|other| *other != at);
            }
            // What is too much is read and dropped, or a chatty shim would wait for us.
            let room = MOST_OUTPUT - said[at].len();
            said[at].extend(&bytes[..count.min(room)]);
        }
    }
    Ok(said)
}

/// What a shim said, without what a terminal would obey.
fn printable(line: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    line.chars().map(plain).collect()
}

/// The one absolute path a shim printed, resolved and checked.
fn answer([stdout, stderr]: &[Vec<u8>; 2], inside: Option<&str>) -> Result<PathBuf, String> {
    let text = String::from_utf8_lossy(stdout);
    let line = text.trim();
    if line.is_empty() {
        let complaint = String::from_utf8_lossy(stderr);
        return Err(
            match complaint.lines().find(|line| !line.trim().is_empty()) {
                Some(line) => format!("it says \"{}\"", printable(line.trim())),
                None => "it printed no path".to_owned(),
            },
        );
    }
    if !line.starts_with('/') || line.contains('\n') {
        return Err("it printed something other than one path".to_owned());
    }
    let named = inside.map_or(PathBuf::from(line), |inside| Path::new(line).join(inside));
    let path = fs::canonicalize(named).map_err(|error| format!("{line}: {error}"))?;
    match is_script(&path) {
        Ok(false) if is_executable(&path) => Ok(path),
        _ => Err(format!("{} is not a program either", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_streams_are_read_to_their_end_in_any_order() {
        let say = |command: &str| {
            let args = ["-c".to_owned(), command.to_owned()];
            run(
                Path::new("/bin/sh"),
                &args,
                &Surroundings::default(),
                PATIENCE,
            )
            .unwrap()
        };
        let both = [b"out\n".to_vec(), b"err\n".to_vec()];
        assert_eq!(say("echo err >&2; exec 2>&-; echo out"), both);
        assert_eq!(say("echo out; exec >&-; echo err >&2"), both);
        let chatty = "i=0; while [ $i -lt 9999 ]; do echo chatter >&2; i=$((i+1)); done; echo out";
        assert_eq!(say(chatty)[0], b"out\n");
    }

    #[test]
    fn a_shim_that_hangs_is_ended_with_all_it_started() {
        let command = "/bin/sleep 60 & echo /bin/sh; wait".to_owned();
        let started = Instant::now();
        let around = Surroundings::default();
        let said = run(
            Path::new("/bin/sh"),
            &["-c".to_owned(), command],
            &around,
            Duration::from_millis(200),
        );
        assert_eq!(said, Err("it did not answer in time".to_owned()));
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}
