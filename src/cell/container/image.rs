//! The image of containers that see the host's own `/usr`: folders, links and a few files of /etc, some kilobytes.
//!
//! It needs no registry and no copy of the system, and is as new as the system is. It is named by what is in it.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use jail::Link;
use sha2::{Digest, Sha256};

use crate::random::{encode, random_name};

/// An image as it is imported.
pub struct Skeleton {
    pub tar: Vec<u8>,
}

impl Skeleton {
    /// With `links` at its root.
    pub fn new(links: &[Link]) -> io::Result<Self> {
        let folder = super::runtime_folder().join(format!("hotcell-image-{}", random_name()));
        fs::create_dir(&folder)?;
        let laid = jail::container::lay_root(&folder, links).and_then(|()| pack(&folder));
        let _ = fs::remove_dir_all(&folder);
        Ok(Self { tar: laid? })
    }

    pub fn name(&self) -> String {
        let hash = Sha256::digest(&self.tar);
        format!("localhost/hotcell-host:{}", encode(&hash[..10]))
    }
}

/// What containers with such an image are shown of the host.
pub fn host_folders() -> Vec<PathBuf> {
    let folders = jail::container::host_folders().into_iter();
    folders.map(PathBuf::from).collect()
}

/// All of a folder, in one order and without times: the same folder gives the same bytes.
fn pack(folder: &Path) -> io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    add(&mut tar, folder, Path::new(""))?;
    tar.into_inner()
}

fn add(tar: &mut tar::Builder<Vec<u8>>, folder: &Path, inside: &Path) -> io::Result<()> {
    let entries = fs::read_dir(folder.join(inside))?;
    let mut names = entries
        .map(|entry| Ok(entry?.file_name()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
    for name in names {
        let inside = inside.join(name);
        let path = folder.join(&inside);
        let kind = fs::symlink_metadata(&path)?.file_type();
        let mut header = tar::Header::new_gnu();
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(0);
        if kind.is_symlink() {
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_mode(0o777);
            tar.append_link(&mut header, &inside, fs::read_link(&path)?)?;
        } else if kind.is_dir() {
            header.set_entry_type(tar::EntryType::Directory);
            // The program's own, laid over by file systems in memory.
            let is_own = ["workspace", "tmp"]
                .iter()
                .any(|it| inside == Path::new(it));
            header.set_mode(if is_own { 0o777 } else { 0o755 });
            tar.append_data(&mut header, &inside, io::empty())?;
            add(tar, folder, &inside)?;
        } else {
            let bytes = fs::read(&path)?;
            header.set_mode(0o644);
            header.set_size(bytes.len() as u64);
            tar.append_data(&mut header, &inside, &bytes[..])?;
        }
    }
    Ok(())
}
