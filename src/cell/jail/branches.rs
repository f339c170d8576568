//! The branches of a cell of the jail: which processes run, and whose files are in the workspace.
//!
//! Only the processes of one branch run; those of the others are stopped, whatever thread or child they have. SECURITY: all of them are one
//! program's in one cell, behind the same walls. One that meddles with another harms its own caller.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use jail::{Aside, Exit, sys};
use rustix::process::Signal;
use tokio::net::UnixStream;
use tokio::task::yield_now;
use tokio::time::sleep;

use super::running::JailCell;
use crate::cell::workspace::{copy_files, remove_files, swap_files};
use crate::cell::{Branch, Cell};

/// A process that is the program, and not the one that the cell was started with.
pub struct Leader {
    process: OwnedFd,
    /// The same once more, only to be told when it is readable. Not a stream: nothing is ever read from it or written to it.
    readiness: UnixStream,
}

impl Leader {
    fn watch(process: OwnedFd) -> io::Result<Self> {
        let readiness = process.try_clone()?.into();
        let readiness = UnixStream::from_std(readiness)?;
        Ok(Self { process, readiness })
    }

    /// How it ended. Cancel safe.
    pub async fn end(&self) -> Exit {
        let _ = self.readiness.readable().await;
        let mut status = None;
        // The kernel tells once init has reaped it.
        for _ in 0..20 {
            status = sys::exit_status(self.process.as_fd());
            if status.is_some() {
                break;
            }
            sleep(Duration::from_millis(1)).await;
        }
        Exit {
            // An older kernel tells its parent alone.
            status: status.unwrap_or(Signal::KILL.as_raw()),
            cpu_micros: 0,
            max_rss: 0,
            left: 1,
        }
    }
}

/// How long processes may take to stop. Each needs a processor for that, which others may have for a while.
const STOPS_WITHIN: Duration = Duration::from_secs(10);

impl JailCell {
    /// Stops what runs, and waits until it stands still.
    async fn set_aside(&mut self) -> io::Result<Aside> {
        let running = self.cell.inner.set_aside()?;
        let started = Instant::now();
        while !self.cell.inner.are_still(&running) {
            match started.elapsed() {
                // Nearly always it takes less than a timer does.
                waited if waited < Duration::from_millis(1) => yield_now().await,
                waited if waited < STOPS_WITHIN => sleep(Duration::from_millis(1)).await,
                _ => {
                    let _ = self.cell.inner.resume(&running);
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
        }
        Ok(running)
    }

    pub(super) async fn keep_copy(&mut self, number: i32) -> io::Result<Branch> {
        let mut running = self.set_aside().await?;
        let (processes, leader) = match self.cell.inner.separate(&mut running, number) {
            Ok(found) => found,
            // There is a copy that nobody can tell from the program.
            Err(error) => {
                self.kill();
                return Err(error);
            }
        };
        let uid = self.cell.inner.uid();
        let copied = self.with_workspace(move |it| copy_files(it.as_fd(), uid));
        let kept = match copied.await {
            Ok(files) => Ok(Branch {
                leader: Some(leader),
                processes,
                files,
            }),
            Err(error) => {
                self.cell.inner.end(&processes)?;
                Err(error)
            }
        };
        self.cell.inner.resume(&running)?;
        kept
    }

    pub(super) async fn switch_to(&mut self, branch: Branch) -> io::Result<Branch> {
        let switched = self.try_switch(branch).await;
        if switched.is_err() {
            self.kill();
        }
        switched
    }

    async fn try_switch(&mut self, branch: Branch) -> io::Result<Branch> {
        let running = self.set_aside().await?;
        let uid = self.cell.inner.uid();
        let Branch {
            leader,
            processes,
            files,
        } = branch;
        let swapped = self.with_workspace(move |it| swap_files(it.as_fd(), uid, &files));
        let files = swapped.await?;
        let leader = leader.map(Leader::watch).transpose()?;
        let before = std::mem::replace(&mut self.leader, leader);
        self.cell.inner.resume(&processes)?;
        Ok(Branch {
            leader: before.map(|leader| leader.process),
            processes: running,
            files,
        })
    }

    pub(super) async fn end_branch(&mut self, branch: Branch) {
        // What is left of it ends with the cell.
        let _ = self.cell.inner.end(&branch.processes);
        let uid = self.cell.inner.uid();
        let remove = move |it: OwnedFd| remove_files(it.as_fd(), uid, &branch.files);
        let _ = self.with_workspace(remove).await;
    }
}
