//! Whether the process that wrote a record still runs.
//!
//! Each process that follows runs holds a lock on a file of its own beside the records. The kernel lets go of it when the process ends, by
//! whatever means, and whoever asks can tell.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// Held as long as this process lives.
pub struct Alive {
    path: PathBuf,
    _lock: File,
}

impl Alive {
    pub fn hold(folder: &Path, server: &str) -> io::Result<Self> {
        let path = path(folder, server);
        let lock = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether a process of this name runs. What one has left behind is removed.
pub fn is_alive(folder: &Path, server: &str) -> bool {
    let path = path(folder, server);
    let Ok(file) = File::open(&path) else {
        return false;
    };
    let is_free = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
    if is_free {
        let _ = fs::remove_file(&path);
    }
    !is_free
}

fn path(folder: &Path, server: &str) -> PathBuf {
    folder.join(format!("alive-{server}"))
}
