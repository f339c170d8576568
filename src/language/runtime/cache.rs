//! What shims answered, in a file. It may be lost or broken at any time; then
//! the shims are asked again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::is_executable;

const REMEMBERED_FOR: Duration = Duration::from_secs(3600);

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Remembered {
    runtimes: BTreeMap<PathBuf, Answer>,
}

#[derive(Serialize, Deserialize)]
struct Answer {
    state: String,
    path: PathBuf,
    modified: Option<u64>,
    /// Seconds since 1970.
    asked: u64,
}

/// What a shim answered when everything was as it is now.
pub fn recall(file: &Path, shim: &Path, state: &str, now: u64) -> Option<PathBuf> {
    let answer = read(file)?.runtimes.remove(shim)?;
    let fresh = now
        .checked_sub(answer.asked)
        .is_some_and(|age| age <= REMEMBERED_FOR.as_secs());
    let same = answer.state == state
        && answer.modified.is_some()
        && modified(&answer.path) == answer.modified;
    (fresh && same && is_executable(&answer.path)).then_some(answer.path)
}

/// Adds an answer. A cache that cannot be written only makes the next start slower.
pub fn remember(file: &Path, shim: &Path, state: &str, path: &Path) {
    let mut remembered = read(file).unwrap_or_default();
    remembered
        .runtimes
        .retain(|_, answer| now().saturating_sub(answer.asked) <= REMEMBERED_FOR.as_secs());
    let answer = Answer {
        state: state.to_owned(),
        path: path.to_owned(),
        modified: modified(path),
        asked: now(),
    };
    remembered.runtimes.insert(shim.to_owned(), answer);
    if let Ok(bytes) = serde_json::to_vec(&remembered) {
        write_own(file, &bytes);
    }
}

fn read(file: &Path) -> Option<Remembered> {
    serde_json::from_slice(&read_own(file)?).ok()
}

/// Writes a file of ours, whole or not at all. What cannot be kept is not.
pub fn write_own(file: &Path, bytes: &[u8]) {
    // Written aside and renamed, so that a reader sees the old file or the new one.
    let aside = file.with_extension(format!("json.{}", std::process::id()));
    let written = || -> std::io::Result<()> {
        if let Some(folder) = file.parent() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let mut new = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&aside)?;
        new.write_all(bytes)?;
        fs::rename(&aside, file)
    };
    if written().is_err() {
        let _ = fs::remove_file(&aside);
    }
}

/// A file that only we can write. SECURITY: who writes it chooses which program
/// we start and which folder its cell sees.
pub fn read_own(file: &Path) -> Option<Vec<u8>> {
    let file = File::open(file).ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() || found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(1 << 20).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Nanoseconds since 1970, or none if there is no such file.
pub fn modified(file: &Path) -> Option<u64> {
    let time = fs::metadata(file)
        .ok()?
        .modified()
        .ok()?
        .duration_since(UNIX_EPOCH)
        .ok()?;
    u64::try_from(time.as_nanos()).ok()
}

pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map(|time| time.as_secs())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_remembered_for_an_hour_and_while_nothing_it_depends_on_changes() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("new/runtimes.json");
        let (shim, program) = (Path::new("/shims/x"), Path::new("/bin/sh"));
        remember(&file, shim, "state", program);

        let asked = now();
        assert_eq!(
            recall(&file, shim, "state", asked),
            Some(program.to_owned())
        );
        assert_eq!(
            recall(&file, shim, "state", asked + 3500),
            Some(program.to_owned())
        );
        assert_eq!(recall(&file, shim, "state", asked + 3700), None);
        assert_eq!(
            recall(&file, shim, "state", asked - 3600),
            None,
            "asked in the future"
        );
        assert_eq!(recall(&file, shim, "other", asked), None);
        assert_eq!(recall(&file, Path::new("/shims/y"), "state", asked), None);
        assert_eq!(
            fs::read_dir(file.parent().unwrap()).unwrap().count(),
            1,
            "something was left aside"
        );
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_cache_that_is_broken_or_writable_by_others_is_not_believed() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("runtimes.json");
        let (shim, program) = (Path::new("/shims/x"), Path::new("/bin/sh"));
        remember(&file, shim, "state", program);
        assert!(recall(&file, shim, "state", now()).is_some());

        let loose = std::os::unix::fs::PermissionsExt::from_mode(0o620);
        fs::set_permissions(&file, loose).unwrap();
        assert_eq!(recall(&file, shim, "state", now()), None);

        fs::remove_file(&file).unwrap();
        fs::write(&file, "{\"runtimes\": 3").unwrap();
        assert_eq!(recall(&file, shim, "state", now()), None);
        remember(&file, shim, "state", program);
        assert!(
            recall(&file, shim, "state", now()).is_some(),
            "a broken cache is replaced"
        );
    }
}
