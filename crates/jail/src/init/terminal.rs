//! Terminals of a cell: a devpts of its own, and the terminal that a program may be started at.
//!
//! Both ends of every terminal are the cell's: nothing of the server's own is in reach. Our end of the program's is given to the
//! server before the program exists, as the loopback listener is.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, getpid, ioctl_tiocsctty, setpgid, setsid};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt};
use rustix::termios::{
    InputModes, OptionalActions, SpecialCodeIndex, Winsize, tcgetattr, tcsetattr, tcsetpgrp,
    tcsetwinsize,
};

use crate::policy::Terminal;
use crate::sys;

/// Mounts the cell's own devpts, before it is at its root.
///
/// SECURITY: each mount is an instance of its own, in which no terminal of the host or of another cell has a name. The kernel keeps a
/// thousand terminals of the host for itself; `max` keeps one cell from having all the others.
pub fn mount_devpts() {
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666,mode=0600,max=64";
    // No wall: on a kernel without it, programs can open no terminals and nothing else is different.
    let _ = mount("devpts", "/cell/dev/pts", "devpts", flags, options);
}

/// Both ends of the program's terminal.
pub struct Pair {
    /// For the server; non-blocking.
    pub ours: OwnedFd,
    pub theirs: OwnedFd,
}

/// Opens a terminal in the cell's devpts, once the cell is at its root.
pub fn open(terminal: &Terminal) -> io::Result<Pair> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let ours = rustix::fs::open("/dev/pts/ptmx", flags, Mode::empty())?;
    unlockpt(&ours)?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let theirs = ioctl_tiocgptpeer(&ours, flags)?;
    let mut modes = tcgetattr(&theirs)?;
    modes.input_modes |= InputModes::IUTF8;
    // Nobody would have a stopped program go on: our init is no shell.
    modes.special_codes[SpecialCodeIndex::VSUSP] = 0;
    tcsetattr(&theirs, OptionalActions::Now, &modes)?;
    tcsetwinsize(
        &theirs,
        Winsize {
            ws_row: terminal.rows,
            ws_col: terminal.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        },
    )?;
    Ok(Pair { ours, theirs })
}

/// Makes init the leader of the terminal's session.
///
/// Not the program: the kernel throws away what nobody has read of a terminal when the leader of its session ends.
pub fn lead(pair: &Pair) -> io::Result<()> {
    match setsid() {
        // The first process of a container leads a session already, one without a terminal. Else the next call is refused.
        Err(Errno::PERM) => {}
        other => drop(other?),
    }
    Ok(ioctl_tiocsctty(&pair.theirs)?)
}

/// Puts the worker into the foreground of the terminal, which is its standard input.
pub fn enter_foreground() -> io::Result<()> {
    setpgid(None::<Pid>, None)?;
    // The kernel would stop us: we are in the background until this is done.
    sys::ignore_terminal_output();
    Ok(tcsetpgrp(rustix::stdio::stdin(), getpid())?)
}
