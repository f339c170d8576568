//! Cells in gVisor: a kernel of its own around each program, with our own init inside.
//!
//! No file descriptor passes into such a sandbox but at its start. So a process of ours prepares it on the host: it makes the bundle and the
//! workspace in memory, in a mount namespace of its own, sends the workspace to the server as the init of a cell would, and becomes `runsc`. Our
//! init inside has the status socket, and says the rest over it. Everything is gone when `runsc` is.
//!
//! A loopback listener cannot come from inside either. It is made here too, in a network namespace with nothing else in it, whose sockets the
//! sandbox is then given in place of those of its own kernel.

mod launcher;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use std::os::unix::process::CommandExt;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

pub(crate) use self::launcher::{main, receive};
use crate::cell::{Cell, Sent};
use crate::codec::{self, fields};
use crate::container::ContainerSpec;
use crate::policy::Link;
use crate::wire;

/// What the process is called that prepares a sandbox and becomes `runsc`.
pub(crate) const NAME: &str = "hotcell-gvisor";

/// Where a sandbox has our binary, and the name that it is started under.
pub const PROGRAM: &str = "/run/hotcell-guest";
/// Where a sandbox has the folder with what its init is told.
pub const FOLDER: &str = "/run/hotcell";
/// In that folder: what it is told, and the library of a pre-started runtime.
pub(crate) const SPEC: &str = "spec";
pub(crate) const LIBRARY: &str = "library";
/// The status socket in a sandbox, and the one at which init alone is asked to copy what was printed.
pub(crate) const STATUS: i32 = 3;
pub(crate) const CONTROL: i32 = 4;
/// Parts of the bundle, which its configuration names.
pub const ROOT: &str = "root";
pub const SHOWN: &str = "shown";
pub const WORKSPACE: &str = "workspace";

/// What is to be started.
#[derive(Debug, Clone, PartialEq)]
pub struct Sandbox {
    pub runsc: PathBuf,
    /// An empty folder, over which the bundle is mounted.
    pub folder: PathBuf,
    /// The OCI configuration of the bundle, as JSON.
    pub config: String,
    pub spec: ContainerSpec,
    pub links: Vec<Link>,
    /// Who owns the workspace, for a server of root's. Else all of it happens in a user namespace of our own.
    pub uid: Option<u32>,
    /// The port of its loopback at which the server listens: its sockets are then those of a network namespace of its own on the host.
    pub listen: Option<u16>,
}

fields!(Sandbox {
    runsc,
    folder,
    config,
    spec,
    links,
    uid,
    listen
});

impl Sandbox {
    /// Starts it. `stdio` are the program's ends of the standard streams. The child is to be waited for.
    pub fn start(
        &self,
        stdio: &[OwnedFd; 3],
        library: Option<&OwnedFd>,
    ) -> io::Result<(Cell, Child)> {
        let (status, theirs) = wire::pair()?;
        let (control, their_control) = wire::pair()?;
        let file = codec::to_memory_file(self)?;
        let child = Command::new("/proc/self/exe")
            .arg0(NAME)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let mut fds = vec![file.as_fd()];
        fds.extend(stdio.iter().map(AsFd::as_fd));
        fds.push(their_control.as_fd());
        fds.extend(library.map(AsFd::as_fd));
        wire::send(status.as_fd(), b"sandbox", &fds)?;
        let cell = Cell {
            made_by: None,
            status: Some(status),
            lease: None,
            lent: None,
            pidfd: Some(pidfd),
            folders: None,
            listener: Sent::expected(self.listen.is_some()),
            terminal: Sent::None,
            uid: self.uid,
            is_empty: false,
            is_guest: true,
            control: Some(control),
            aside: Default::default(),
        };
        Ok((cell, child))
    }
}

/// The path of a part of the bundle.
fn part(folder: &Path, name: &str) -> PathBuf {
    folder.join(name)
}
