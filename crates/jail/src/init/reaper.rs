//! The rest of pid 1's life: reap, report the program's end, and go.
//!
//! The server ends it when the program has ended; it ends by itself when the server or the spawner is
//! gone. The kernel then ends everything else in the cell.

use std::convert::Infallible;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags};

use crate::error::{Failed, step};
use crate::spec::{Exit, Status};
use crate::sys;
use crate::wire;

pub fn watch(
    program: libc::pid_t,
    [status, spawner]: [BorrowedFd<'_>; 2],
    signals: BorrowedFd<'_>,
    is_grouped: bool,
) -> Result<Infallible, Failed> {
    step("watching the program", || {
        loop {
            let mut fds = [
                PollFd::new(&status, PollFlags::RDHUP),
                PollFd::new(&spawner, PollFlags::IN),
                PollFd::new(&signals, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let gone = PollFlags::RDHUP | PollFlags::HUP;
            if fds[..2].iter().any(|fd| fd.revents().intersects(gone)) {
                sys::exit_now(0);
            }
            drain(signals);
            while let Some(ended) = sys::reap()? {
                if ended.pid == program {
                    let exit = Exit {
                        status: ended.status,
                        cpu_micros: ended.cpu_micros,
                        max_rss: ended.max_rss,
                        left: match () {
                            () if is_alone() => 0,
                            // The group counts them.
                            () if is_grouped => 1,
                            () => count_processes(),
                        },
                    };
                    wire::send(status, &Status::Exited(exit).to_bytes(), &[])?;
                    // The server ends us. Until then it has this processor for its answer.
                    let mut fds = [
                        PollFd::new(&status, PollFlags::RDHUP),
                        PollFd::new(&spawner, PollFlags::IN),
                    ];
                    while let Err(rustix::io::Errno::INTR) = poll(&mut fds, None) {}
                    sys::exit_now(0);
                }
            }
        }
    })
}

fn drain(signals: BorrowedFd<'_>) {
    let mut buffer = [0; 128];
    while matches!(rustix::io::read(signals, &mut buffer), Ok(read) if read > 0) {}
}

/// Whether no process but us is left. Every orphan becomes a child of ours.
fn is_alone() -> bool {
    loop {
        match sys::reap() {
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(error) => return error.raw_os_error() == Some(libc::ECHILD),
        }
    }
}

/// How many processes are left, ourselves not counted; 1 if it cannot be told.
fn count_processes() -> u32 {
    let count = || -> io::Result<u32> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // Not `open`: the filter knows the newer call alone.
        let proc = rustix::fs::openat(CWD, "/proc", flags, Mode::empty())?;
        let mut buffer = Vec::with_capacity(4096);
        let mut entries = rustix::fs::RawDir::new(&proc, buffer.spare_capacity_mut());
        let mut count = 0;
        while let Some(entry) = entries.next() {
            let name = entry?.file_name().to_bytes().to_vec();
            count += u32::from(name.iter().all(u8::is_ascii_digit));
        }
        Ok(count)
    };
    count().unwrap_or(2).saturating_sub(1)
}
