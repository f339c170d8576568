//! Folders that nothing was put into or taken out of since they were looked at.

use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::fstat;

/// The kernel's clock for files goes in steps of a few milliseconds. After so long another change has another time.
const STEPS: Duration = Duration::from_millis(50);

/// A folder, and when it last changed. A program cannot set that time.
pub struct Settled {
    folder: OwnedFd,
    changed: Duration,
}

impl Settled {
    /// Of a folder that is about to be looked at; none if it has changed so lately that the next change could not be seen.
    pub fn new(folder: OwnedFd) -> Option<Self> {
        let changed = changed(&folder)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let is_old = now.checked_sub(changed)? > STEPS;
        is_old.then_some(Self { folder, changed })
    }

    /// Whether it is as it was.
    pub fn is_still(&self) -> bool {
        changed(&self.folder) == Some(self.changed)
    }
}

/// When it last changed, if it is still somewhere.
fn changed(folder: &OwnedFd) -> Option<Duration> {
    let found = fstat(folder).ok().filter(|it| it.st_nlink > 0)?;
    let seconds = u64::try_from(found.st_ctime).ok()?;
    let rest = u32::try_from(found.st_ctime_nsec).ok()?;
    Some(Duration::new(seconds, rest))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn what_is_put_into_a_folder_or_taken_out_of_it_is_seen() {
        let folder = tempfile::TempDir::new().unwrap();
        let open = || OwnedFd::from(File::open(folder.path()).unwrap());
        let settle = || loop {
            if let Some(settled) = Settled::new(open()) {
                break settled;
            }
            std::thread::yield_now();
        };
        assert!(Settled::new(open()).is_none(), "it is new");
        let settled = settle();
        assert!(settled.is_still());
        fs::write(folder.path().join("a"), "").unwrap();
        assert!(!settled.is_still());
        let settled = settle();
        fs::write(folder.path().join("a"), "more").unwrap();
        assert!(settled.is_still(), "only the file is another");
        fs::remove_file(folder.path().join("a")).unwrap();
        assert!(!settled.is_still());
        fs::remove_dir(folder.path()).unwrap();
        assert!(!settled.is_still());
    }
}
