//! Stopping all processes of a cell for a while, and letting them go on. Runs in the server.
//!
//! By signals, which need no cgroup: nobody can block SIGSTOP, and every process of a cell is a descendant of its init, which adopts
//! orphans. Init itself goes on, so that the cell still ends with its lifelines. A program can tell that it was stopped.

use std::collections::HashSet;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::proc_usage::descendants;

/// A process that forks may be stopped after its child was made, so we look again until there is nobody new. A program that forks
/// without end is at its limit of processes long before.
const MOST_ROUNDS: usize = 1000;

/// Stops every process below the one behind `init`; which they are.
pub fn freeze(init: BorrowedFd<'_>) -> io::Result<HashSet<i32>> {
    let mut stopped = HashSet::new();
    for _ in 0..MOST_ROUNDS {
        let found = below(init)?;
        let new: Vec<i32> = found.into_iter().filter(|it| stopped.insert(*it)).collect();
        if new.is_empty() {
            return Ok(stopped);
        }
        new.into_iter().for_each(|pid| signal(pid, Signal::STOP));
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Whether these stand still: a signal takes microseconds to arrive, but for one that waits for a disk.
pub fn are_stopped(pids: &HashSet<i32>) -> bool {
    !pids.iter().any(|pid| runs(*pid))
}

/// Whether it is neither stopped nor at its end.
fn runs(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| &rest[..1]);
    !matches!(state, None | Some("T" | "t" | "Z" | "X"))
}

/// The one of these that is called `number` in its own process namespace, and a file descriptor of it.
pub fn find(pids: &HashSet<i32>, number: i32) -> io::Result<(i32, OwnedFd)> {
    let is_called_so = |pid: &&i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let mut lines = status.lines();
        let names = lines.find_map(|line| line.strip_prefix("NSpid:"));
        let own = names.and_then(|names| names.split_whitespace().next_back());
        own.and_then(|own| own.parse().ok()) == Some(number)
    };
    let found = pids.iter().find(is_called_so);
    let found = found.copied().and_then(Pid::from_raw);
    let pid = found.ok_or(io::ErrorKind::NotFound)?;
    let process = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
    Ok((pid.as_raw_nonzero().get(), process))
}

/// All processes below the one behind `init`.
pub fn below(init: BorrowedFd<'_>) -> io::Result<Vec<i32>> {
    let (_, pids) = descendants(init)?;
    let pids = pids.iter().skip(1);
    Ok(pids.filter_map(|pid| pid.parse().ok()).collect())
}

/// One that has ended meanwhile needs no signal.
pub fn signal(pid: i32, signal: Signal) {
    let process = Pid::from_raw(pid).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
    if let Some(Ok(process)) = process {
        let _ = pidfd_send_signal(&process, signal);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::fd::AsFd;
    use std::process::{Command, Stdio};

    use super::*;

    /// The states of all processes below, as the kernel has them.
    fn states(init: BorrowedFd<'_>) -> Vec<String> {
        let state = |pid: i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let rest = stat.rsplit_once(") ")?.1;
            Some(rest[..1].to_owned())
        };
        below(init).unwrap().into_iter().filter_map(state).collect()
    }

    #[test]
    fn everything_below_init_stands_still_until_it_is_let_go() {
        // In the place of init: a shell with a child and a grandchild that never rest.
        let script =
            "sh -c 'sh -c \"echo ready; while :; do :; done\" & while :; do :; done' & wait";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let pid = Pid::from_child(&child);
        let init = pidfd_open(pid, PidfdFlags::empty()).unwrap();

        freeze(init.as_fd()).unwrap();
        // A signal takes a moment to arrive on another processor.
        while states(init.as_fd()).iter().any(|state| state != "T") {}
        assert_eq!(states(init.as_fd()), ["T", "T"]);

        let stopped = freeze(init.as_fd()).unwrap();
        while !are_stopped(&stopped) {
            std::thread::yield_now();
        }
        let (found, _) = find(&stopped, *stopped.iter().next().unwrap()).unwrap();
        assert!(stopped.contains(&found) && find(&stopped, pid.as_raw_nonzero().get()).is_err());

        stopped.iter().for_each(|pid| signal(*pid, Signal::CONT));
        while states(init.as_fd()).iter().any(|state| state == "T") {}
        assert_eq!(states(init.as_fd()).len(), 2);

        below(init.as_fd())
            .unwrap()
            .into_iter()
            .for_each(|pid| signal(pid, Signal::KILL));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
