//! Finding the servers of this user that run on this machine, and being found as one: a socket for each in the user's runtime folder.
//!
//! SECURITY: the folder is this user's alone, and both ends ask the kernel who the other is. What is said over the sockets is not known here.

use std::ffi::{CStr, OsString};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use rustix::process::geteuid;

const ENDING: &str = "sock";
/// How many may wait to be accepted.
const BACKLOG: i32 = 64;
/// A user has a few servers, one for each MCP client.
const MOST: usize = 16;
/// The flag of `hotcell run` that looks for none.
pub const ALONE: &CStr = c"--no-server";

/// Which build of hotcell this is: the same text is the same program.
pub fn build() -> String {
    let size = fs::metadata("/proc/self/exe").map_or(0, |it| it.len());
    format!("{} {size}", env!("HOTCELL_VERSION"))
}

/// `hotcell` in the folder that the system makes for a user who is logged in.
fn folder() -> Option<PathBuf> {
    let runtime = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?);
    runtime.is_absolute().then(|| runtime.join("hotcell"))
}

/// SECURITY: in a folder that others can write to, somebody else's socket could have our name.
fn is_own(folder: &Path) -> bool {
    let own = geteuid().as_raw();
    let is_own = |it: fs::Metadata| it.is_dir() && it.uid() == own && it.mode() & 0o077 == 0;
    fs::symlink_metadata(folder).is_ok_and(is_own)
}

/// Whether the process at the other end is this user's.
pub fn is_same_user(socket: impl AsFd) -> bool {
    socket_peercred(socket).is_ok_and(|peer| peer.uid == geteuid())
}

/// The servers of this user, connected to one after the other.
pub struct Servers {
    folder: PathBuf,
    names: Vec<OsString>,
    /// The first that was found.
    first: Option<OwnedFd>,
}

impl Servers {
    /// Those that run, if one does.
    pub fn find() -> Option<Self> {
        let folder = folder().filter(|folder| is_own(folder))?;
        let mut servers = Self::named(folder);
        servers.first = Some(servers.next()?);
        Some(servers)
    }

    fn named(folder: PathBuf) -> Self {
        Self {
            names: names(&folder),
            folder,
            first: None,
        }
    }

    /// All of them once more.
    pub fn again(self) -> Self {
        Self::named(self.folder)
    }
}

impl Iterator for Servers {
    type Item = OwnedFd;

    fn next(&mut self) -> Option<OwnedFd> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            let name = self.names.pop()?;
            let connected = connect_to(&self.folder.join(name));
            if let Some(socket) = connected.ok().filter(|it| is_same_user(it)) {
                return Some(socket);
            }
        }
    }
}

fn names(folder: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name());
    let is_socket = |name: &OsString| Path::new(name).extension().is_some_and(|it| it == ENDING);
    names.filter(is_socket).take(MOST).collect()
}

fn new_socket() -> io::Result<OwnedFd> {
    let kind = SocketType::SEQPACKET;
    Ok(socket_with(
        AddressFamily::UNIX,
        kind,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let socket = new_socket()?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// A socket at which others of this user find us. Its name goes when this is dropped.
pub struct Listener {
    pub socket: OwnedFd,
    path: Option<PathBuf>,
}

impl Listener {
    /// One in the runtime folder; none where there is no such folder.
    pub fn open() -> io::Result<Option<Self>> {
        let Some(folder) = folder() else {
            return Ok(None);
        };
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if !is_own(&folder) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        remove_abandoned(&folder);
        let number = std::process::id();
        // Whoever finds one that nobody listens at removes it, so it gets its name when we do.
        let hidden = folder.join(format!(".{number}"));
        let _ = fs::remove_file(&hidden);
        let socket = new_socket()?;
        bind(&socket, &SocketAddrUnix::new(&hidden)?)?;
        fs::set_permissions(&hidden, fs::Permissions::from_mode(0o600))?;
        listen(&socket, BACKLOG)?;
        let path = folder.join(format!("{number}.{ENDING}"));
        fs::rename(&hidden, &path)?;
        Ok(Some(Self {
            socket,
            path: Some(path),
        }))
    }

    /// One that was opened for us.
    pub fn given(socket: OwnedFd) -> Self {
        Self { socket, path: None }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes the sockets of servers that were killed.
fn remove_abandoned(folder: &Path) {
    for name in names(folder) {
        let path = folder.join(name);
        let refused =
            connect_to(&path).is_err_and(|it| it.kind() == io::ErrorKind::ConnectionRefused);
        if refused {
            let _ = fs::remove_file(path);
        }
    }
}
