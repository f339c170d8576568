//! One share of the processors for each cell, where no cgroup divides them. Runs in the server.
//!
//! The kernel gives every thread that can run the same, and where it makes scheduler groups of sessions (`sched_autogroup_enabled`) every
//! session: a program had as many shares as it started of either. Here they are lowered until all of a cell's together weigh a part of what one
//! does that has just been started. Nobody's priority is raised, so anybody may do it to what they own; a program cannot take it back.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Pid, setpriority_process};

use crate::proc_usage::{TICK, descendants, listed, read, ticks};

/// A cell that has used less, in ms, does not keep others from much.
const LITTLE: u64 = 500;
/// What one that has used more weighs beside one that has just been started, and beside the server: a fourth. Those that use much are equal.
const PART: usize = 4;
/// The lowest priority.
const LOWEST: i32 = 19;

/// A thread as the kernel tells of it.
#[derive(Debug, PartialEq)]
struct Thread {
    can_run: bool,
    session: i32,
    nice: i32,
    /// Whether its process has no other.
    is_alone: bool,
}

/// Lowers the threads and sessions of the cell whose init is behind `init`, once it has used much.
pub fn level(init: BorrowedFd<'_>) -> io::Result<()> {
    let (proc, pids) = descendants(init)?;
    let stat = |path: String| read(proc.as_fd(), &path).unwrap_or_default();
    // The first is init, which uses nothing.
    let pids = pids.iter().skip(1);
    let processes: Vec<_> = pids.map(|pid| (pid, stat(format!("{pid}/stat")))).collect();
    let used: u64 = processes.iter().map(|(_, stat)| ticks(stat)).sum();
    if used * TICK < LITTLE {
        return Ok(());
    }
    let mut threads = Vec::new();
    // A process of each session in which something can run.
    let mut sessions = BTreeMap::new();
    for (pid, first) in processes {
        let is_alone = thread(&first).is_some_and(|it| it.is_alone);
        let numbers = match is_alone {
            true => vec![pid.clone()],
            false => tasks(&proc, pid),
        };
        for number in numbers {
            let text = match is_alone {
                true => first.clone(),
                false => stat(format!("{pid}/task/{number}/stat")),
            };
            let Some(thread) = thread(&text) else {
                continue;
            };
            if thread.can_run {
                sessions.insert(thread.session, pid);
            }
            threads.push((number, thread));
        }
    }
    let wanted = nice_of_one_in(threads.iter().filter(|(_, it)| it.can_run).count());
    for (number, thread) in &threads {
        // A number that is another's by now: the kernel hands out millions of others before.
        let number = number.parse().ok().and_then(Pid::from_raw);
        if thread.nice < wanted && number.is_some() {
            let _ = setpriority_process(number, wanted);
        }
    }
    let wanted = nice_of_one_in(sessions.len());
    for pid in sessions.values() {
        // The kernel lets ordinary users do this ten times a second, all together: the rest is for the next look.
        if lower_session(&proc, pid, wanted) == Err(Errno::AGAIN) {
            break;
        }
    }
    Ok(())
}

fn tasks(proc: &OwnedFd, pid: &str) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(proc, format!("{pid}/task"), flags, Mode::empty());
    let numbers = folder.map(|folder| listed(folder.as_fd()).unwrap_or_default());
    numbers.unwrap_or_default()
}

/// Lowers the scheduler group of a process's session, where there is one.
fn lower_session(proc: &OwnedFd, pid: &str, wanted: i32) -> Result<(), Errno> {
    let path = format!("{pid}/autogroup");
    let text = read(proc.as_fd(), &path).unwrap_or_default();
    let is_higher = |nice: i32| nice < wanted;
    let nice = text.trim_end().rsplit_once("nice ");
    if !nice.is_some_and(|(_, nice)| nice.parse().is_ok_and(is_higher)) {
        return Ok(());
    }
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let mut file = std::fs::File::from(openat(proc, path, flags, Mode::empty())?);
    let written = file.write_all(wanted.to_string().as_bytes());
    written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// The priority at which so many weigh [`PART`] together: the kernel's weights differ by a quarter from each to the next.
fn nice_of_one_in(count: usize) -> i32 {
    let steps = ((PART * count.max(1)) as f64).log(1.25).ceil() as i32;
    steps.min(LOWEST)
}

/// Fields 3, 6, 19 and 20. The name, the second, may hold anything.
fn thread(stat: &str) -> Option<Thread> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Thread {
        can_run: *fields.first()? == "R",
        session: fields.get(3)?.parse().ok()?,
        nice: fields.get(16)?.parse().ok()?,
        is_alone: *fields.get(17)? == "1",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_read_whatever_its_name_is() {
        let stat = "7 (a) R 9 9) S 1 7 8 0 -1 4194560 1 2 3 4 10 20 300 4000 20 5 1 0 5";
        let read = Thread {
            can_run: false,
            session: 8,
            nice: 5,
            is_alone: true,
        };
        assert_eq!(thread(stat), Some(read));
        assert_eq!(thread("7 (a) R 1"), None);
    }

    #[test]
    fn as_many_as_there_are_weigh_about_a_fourth_of_one() {
        for count in [1, 2, 3, 8, 16] {
            let weight = count as f64 * 0.8_f64.powi(nice_of_one_in(count));
            assert!((0.19..=0.25).contains(&weight), "{count}: {weight}");
        }
        assert_eq!(nice_of_one_in(0), nice_of_one_in(1));
        assert_eq!(nice_of_one_in(1000), LOWEST);
    }
}
