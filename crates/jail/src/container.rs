//! Cells that a container engine makes the walls of, with our own init inside.
//!
//! The engine starts this binary as the container's first process, under the name [`PROGRAM`]. It connects to [`SOCKET`], is told what it
//! is there for, and goes on with the second half of the checklist of every cell ([`init`](crate::init)). From there on the server
//! holds a [`Cell`] like any other. Nothing here knows any engine.
//!
//! SECURITY: the socket lies in a folder that this container alone is shown. One connection is accepted, and the name is gone
//! before there is a program.

mod inside;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
    sockopt,
};
use rustix::process::{PidfdFlags, pidfd_open};

pub(crate) use self::inside::{live_nested, main, main_of_guest, open_kills};
use crate::cell::{Cell, Sent};
use crate::codec::{self, fields};
use crate::host::is_host_root;
use crate::policy::{Link, Policy, Zygote};
use crate::slots::{COUNT, UidBlock};
use crate::spawner::{masks, root};
use crate::wire;

/// Where a container has this binary, and the name that it is started under.
pub const PROGRAM: &str = "/run/hotcell-init";
/// Where a container has the folder with the server's socket.
pub const FOLDER: &str = "/run/hotcell";
/// The socket in that folder.
pub const SOCKET: &str = "server";

/// Lays out the root of a container in an empty folder, with `links` at its top. The host's folders are mounted there.
pub fn lay_root(root: &Path, links: &[Link]) -> io::Result<()> {
    root::lay_bare(root, links)
}

/// The folders of the host that every cell sees, read-only at their own paths.
pub fn host_folders() -> Vec<&'static Path> {
    root::system().chain(root::settings()).collect()
}

/// What of /proc tells of the host or of other tenants. A container's is its engine's to cover.
pub fn hidden_in_proc() -> Vec<PathBuf> {
    masks::hidden().collect()
}

/// What the init of a container is told.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerSpec {
    pub policy: Policy,
    /// The granted folders that the program may write to.
    pub writable: Vec<PathBuf>,
    /// The runtime to pre-start; its library comes beside the spec.
    pub zygote: Option<Zygote>,
}

fields!(ContainerSpec {
    policy,
    writable,
    zygote
});

/// The host uids that containers of root's server have, one after the other.
pub struct Uids {
    block: UidBlock,
    next: AtomicU32,
}

impl Uids {
    /// Claims some, if we are root and not an ordinary user whose ids the containers have.
    pub fn claim() -> io::Result<Option<Self>> {
        if !is_host_root()? {
            return Ok(None);
        }
        Ok(Some(Self {
            block: UidBlock::claim()?,
            next: AtomicU32::new(0),
        }))
    }

    pub fn next(&self) -> u32 {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.block.base + 1 + next % COUNT
    }
}

/// The socket at which the init of one container is waited for.
pub struct Awaited(OwnedFd);

impl Awaited {
    /// Listens in `folder`, which the container is shown at [`FOLDER`].
    pub fn listen(folder: &Path) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let path = folder.join(SOCKET);
        bind(&socket, &SocketAddrUnix::new(&path)?)?;
        listen(&socket, 1)?;
        // The container's user is not ours. Nobody else can reach the folder.
        rustix::fs::chmod(&path, rustix::fs::Mode::from_raw_mode(0o666))?;
        Ok(Self(socket))
    }

    /// Waits for the init to connect, for so long; `None` if it has not. Blocks.
    pub fn accept(&self, within: std::time::Duration) -> io::Result<Option<Connected>> {
        let within = Timespec {
            tv_sec: within.as_secs() as i64,
            tv_nsec: within.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut fds, Some(&within)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            other => drop(other?),
        }
        let status = accept_with(&self.0, SocketFlags::CLOEXEC)?;
        let pid = sockopt::socket_peercred(&status)?.pid;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        // Whoever connected still holds its end, so that the number was its own all the time.
        let mut fds = [PollFd::new(&status, PollFlags::RDHUP)];
        if poll(&mut fds, Some(&Timespec::default()))? != 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some(Connected { status, pidfd }))
    }
}

/// The init of a container that has been told nothing yet. It ends when this is dropped.
pub struct Connected {
    status: OwnedFd,
    pidfd: OwnedFd,
}

impl Connected {
    /// Tells it what it is there for. `stdio` are the program's ends of the standard streams, `uid` who owns its files if that is not us.
    pub fn tell(
        self,
        spec: &ContainerSpec,
        stdio: &[OwnedFd; 3],
        library: Option<&OwnedFd>,
        uid: Option<u32>,
    ) -> io::Result<Cell> {
        if let Some(uid) = uid {
            crate::jail::own_pipes(stdio, uid)?;
        }
        let file = codec::to_memory_file(spec)?;
        let mut fds = vec![file.as_fd()];
        fds.extend(stdio.iter().map(AsFd::as_fd));
        fds.extend(library.map(AsFd::as_fd));
        wire::send(self.status.as_fd(), b"spec", &fds)?;
        Ok(Cell {
            made_by: None,
            status: Some(self.status),
            lease: None,
            lent: None,
            pidfd: Some(self.pidfd),
            folders: None,
            listener: Sent::expected(spec.policy.listen.is_some()),
            terminal: Sent::expected(spec.policy.terminal.is_some()),
            uid,
            is_empty: false,
            is_guest: false,
            control: None,
            aside: Default::default(),
        })
    }

    /// Whether it still waits: one that is told nothing says nothing.
    pub fn still_waits(&self) -> bool {
        let mut fds = [PollFd::new(&self.status, PollFlags::IN | PollFlags::RDHUP)];
        matches!(poll(&mut fds, Some(&Timespec::default())), Ok(0))
    }
}
