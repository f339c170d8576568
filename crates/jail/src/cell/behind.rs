//! Sandboxes with a kernel of their own, ended behind the answer.
//!
//! Nothing but our init is left in them. To end the processes of such a kernel takes milliseconds of the processors, which whoever waits for
//! the answer would wait for too.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, pidfd_send_signal};

/// By then the answer is on its way.
const BEHIND: Duration = Duration::from_millis(5);

/// One that is to be ended. If this process ends before, the process that watches it does so.
struct Empty {
    /// If either were closed, it would end at once.
    _sockets: (OwnedFd, Option<OwnedFd>),
    pidfd: OwnedFd,
    at: Instant,
}

impl Drop for Empty {
    fn drop(&mut self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }
}

/// Ends one soon, whose sockets these are.
pub fn end(sockets: (OwnedFd, Option<OwnedFd>), pidfd: OwnedFd) {
    static THREAD: OnceLock<Option<Sender<Empty>>> = OnceLock::new();
    let empty = Empty {
        _sockets: sockets,
        pidfd,
        at: Instant::now() + BEHIND,
    };
    if let Some(sender) = THREAD.get_or_init(start) {
        // Where the thread is gone, it is dropped here.
        let _ = sender.send(empty);
    }
}

fn start() -> Option<Sender<Empty>> {
    let (sender, receiver) = channel();
    let thread = thread::Builder::new().name("sandbox-reaper".to_owned());
    let thread = thread.stack_size(64 << 10);
    let started = thread.spawn(move || end_all(&receiver));
    started.is_ok().then_some(sender)
}

fn end_all(receiver: &Receiver<Empty>) {
    for empty in receiver {
        thread::sleep(empty.at.saturating_duration_since(Instant::now()));
        drop(empty);
    }
}
