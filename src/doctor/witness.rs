//! What stands outside while a probe tries to reach it.

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

use super::question::Question;

/// A file that everybody may read, a port that everybody may connect to, and locks that nobody else has.
///
/// Either may be missing: a host can be without a writable folder or a loopback.
pub struct Witness {
    canary: Option<Canary>,
    listener: Option<TcpListener>,
    locked: Vec<(&'static str, File)>,
}

/// What of the host a sandbox sees, or something in its place, at the same path.
const SEEN: [&str; 12] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/etc",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/ssl/certs",
    "/usr",
    "/usr/bin/env",
];

impl Witness {
    pub fn stand() -> Self {
        Self {
            canary: Canary::plant(),
            listener: listen().ok(),
            locked: SEEN.into_iter().filter_map(lock).collect(),
        }
    }

    pub fn question(&self) -> Question {
        let path = self.canary.as_ref().and_then(|canary| canary.path.to_str());
        Question::Facts {
            canary: path.map(str::to_owned),
            listener: self.address(),
            locked: self
                .locked
                .iter()
                .map(|(path, _)| (*path).to_owned())
                .collect(),
        }
    }

    /// Whether anybody came in; nothing if nobody listened.
    pub fn was_reached(&self) -> Option<bool> {
        let listener = self.listener.as_ref()?;
        Some(listener.accept().is_ok())
    }

    fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref()?.local_addr().ok()
    }
}

/// A lock that others may have too, so that two doctors do not see each other.
fn lock(path: &'static str) -> Option<(&'static str, File)> {
    let file = File::open(path).ok()?;
    flock(&file, FlockOperation::NonBlockingLockShared).ok()?;
    Some((path, file))
}

fn listen() -> io::Result<TcpListener> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// A file in a folder of its own, both gone when dropped.
struct Canary {
    folder: PathBuf,
    path: PathBuf,
}

impl Canary {
    /// In the first folder that has room for it.
    fn plant() -> Option<Self> {
        let folders = [std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()];
        folders
            .iter()
            .find_map(|folder| Self::plant_in(folder).ok())
    }

    fn plant_in(folder: &Path) -> io::Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        let folder = folder.join(format!("hotcell-doctor-{}-{now}", std::process::id()));
        // Fails if there is anything of that name, a link too.
        fs::create_dir(&folder)?;
        let canary = Self {
            path: folder.join("canary"),
            folder,
        };
        fs::write(&canary.path, "nothing in a sandbox can read this\n")?;
        // Readable for all: what hides it must be the cell, not its mode.
        open_to_all(&canary.folder, 0o755)?;
        open_to_all(&canary.path, 0o644)?;
        Ok(canary)
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_dir(&self.folder);
    }
}

fn open_to_all(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}
