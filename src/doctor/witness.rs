//! What stands outside while a probe tries to reach it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::question::Question;

/// A file that everybody may read, a port that everybody may connect to, and locks that nobody else has.
///
/// Either may be missing: a host can be without a writable folder or a loopback.
pub struct Witness {
    canary: Option<Canary>,
    listener: Option<TcpListener>,
    _locks: Vec<File>,
    /// What a sandbox sees, and a neighbour of it has locked.
    seen: Vec<String>,
}

impl Witness {
    /// Locks what the host has at the paths that were `seen` in a sandbox.
    pub fn stand(seen: Vec<String>) -> Self {
        Self {
            canary: Canary::plant(),
            listener: listen().ok(),
            _locks: seen.iter().filter_map(|path| lock(path)).collect(),
            seen,
        }
    }

    pub fn question(&self) -> Question {
        let path = self.canary.as_ref().and_then(|canary| canary.path.to_str());
        Question::Facts {
            canary: path.map(str::to_owned),
            listener: self.address(),
            locked: self.seen.clone(),
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

/// How many processes of this machine have the uid of a sandbox of ours that runs `program`, and are not in it; nothing if none was found.
pub fn with_the_uid_of(program: &str) -> Option<usize> {
    let all = fs::read_dir("/proc").ok()?.flatten();
    let all: Vec<Process> = all.filter_map(|it| Process::read(&it.path())).collect();
    let parent = |of: &Process| all.iter().find(|it| it.pid == of.parent);
    let is_ours = |it: &&Process| {
        // Its init is our child, and the program is init's.
        let init = parent(it).map(|init| init.parent.as_str());
        it.name.starts_with(program.as_bytes()) && init == Some(&std::process::id().to_string())
    };
    let own = all.iter().find(is_ours)?;
    // Nobody may look into its init.
    let is_in_it = |it: &Process| it.namespace == own.namespace || it.pid == own.parent;
    let shares = |it: &&Process| it.uid == own.uid && !is_in_it(it);
    Some(all.iter().filter(shares).count())
}

struct Process {
    pid: String,
    parent: String,
    uid: String,
    name: Vec<u8>,
    /// Of its process numbers; nothing where we may not look.
    namespace: Option<PathBuf>,
}

impl Process {
    fn read(folder: &Path) -> Option<Self> {
        let status = fs::read_to_string(folder.join("status")).ok()?;
        let field = |name: &str| {
            let mut lines = status.lines();
            let line = lines.find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next().map(str::to_owned)
        };
        Some(Self {
            pid: field("Pid:")?,
            parent: field("PPid:")?,
            uid: field("Uid:")?,
            name: fs::read(folder.join("cmdline")).ok()?,
            namespace: fs::read_link(folder.join("ns/pid")).ok(),
        })
    }
}

/// A lock that others may have too, so that two doctors do not see each other.
fn lock(path: &str) -> Option<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)
        .ok()?;
    flock(&file, FlockOperation::NonBlockingLockShared).ok()?;
    Some(file)
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
