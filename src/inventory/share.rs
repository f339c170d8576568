//! The same bytes once on disk, where several folders of a store have them.
//!
//! A link changes the `ctime` of a file in every folder that has it, and so does the removal of one of them. What was noted of
//! the others is then compared by its hash once, and noted anew.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::{Entry, Inventory, Look, changed, hash_of_file};

/// A smaller file takes about as much as the link to it.
const SMALLEST: u64 = 4 << 10;

impl Inventory {
    /// Has files of `folder`, which this is the inventory of, share their bytes with files of other folders. Says how many bytes.
    ///
    /// What cannot be shared stays as it is: another file system, a file with too many links, one that is gone.
    pub fn share(&mut self, folder: &Path, others: &[(PathBuf, Self)]) -> u64 {
        let mut known: HashMap<(&str, u64, u32), PathBuf> = HashMap::new();
        for (other, inventory) in others {
            for entry in inventory.0.iter().filter(|it| it.can_be_shared()) {
                let key = (entry.hash.as_str(), entry.bytes, entry.mode);
                known.entry(key).or_insert_with(|| other.join(&entry.path));
            }
        }
        let mut shared = 0;
        for entry in self.0.iter_mut().filter(|it| it.can_be_shared()) {
            let key = (entry.hash.as_str(), entry.bytes, entry.mode);
            let Some(same) = known.get(&key).cloned() else {
                continue;
            };
            let own = folder.join(&entry.path);
            if replace(&own, &same, entry).is_ok() {
                shared += entry.bytes;
            }
        }
        shared
    }

    /// Whether a folder still holds this; and if so, whether times were noted anew.
    pub fn renew(&mut self, folder: &Path, look: Look) -> Option<bool> {
        let mut is_new = false;
        for entry in &mut self.0 {
            if !entry.is_still_in(folder, look) {
                return None;
            }
            let is_file = FileType::from_raw_mode(entry.mode).is_file();
            let found = fs::symlink_metadata(folder.join(&entry.path)).ok()?;
            if is_file && changed(&found) != entry.changed {
                entry.changed = changed(&found);
                is_new = true;
            }
        }
        Some(is_new)
    }
}

impl Entry {
    fn can_be_shared(&self) -> bool {
        FileType::from_raw_mode(self.mode).is_file() && self.bytes >= SMALLEST
    }
}

/// Puts a link to `same` in the place of `own`.
///
/// SECURITY: what is noted of a file in another folder may no longer be true of it, and would be believed of this one too. So
/// the bytes are read again, after the link is there and before it has its place.
fn replace(own: &Path, same: &Path, entry: &mut Entry) -> io::Result<()> {
    let aside = own.with_added_extension(crate::random::random_name());
    fs::hard_link(same, &aside)?;
    let check = || -> io::Result<()> {
        let found = fs::symlink_metadata(&aside)?;
        let is_same = found.is_file() && found.len() == entry.bytes && found.mode() == entry.mode;
        let is_ours = found.uid() == fs::symlink_metadata(own)?.uid();
        if !is_same || !is_ours || hash_of_file(&aside)? != entry.hash {
            return Err(io::ErrorKind::InvalidData.into());
        }
        fs::rename(&aside, own)
    };
    let checked = check();
    if checked.is_err() {
        let _ = fs::remove_file(&aside);
        return checked;
    }
    entry.changed = changed(&fs::symlink_metadata(own)?);
    Ok(())
}
