//! The image of containers that see the host's own `/usr`: folders, links and a few files of /etc, some kilobytes.
//!
//! It needs no registry and no copy of the system, and is as new as the system is. It is named by what is in it.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
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
    add(&mut tar, folder, Path::new(""), Modes::Usual)?;
    tar.into_inner()
}

/// Writes the root file system in `root` to an engine; or that of this system, with all that is in `/usr`.
pub fn write_system(root: Option<&Path>, to: impl Write) -> io::Result<()> {
    let mut tar = tar::Builder::new(to);
    match root {
        Some(root) => add(&mut tar, root, Path::new(""), Modes::Own)?,
        None => {
            let skeleton = Skeleton::new(&[])?;
            for entry in tar::Archive::new(&skeleton.tar[..]).entries()? {
                let entry = entry?;
                tar.append(&entry.header().clone(), entry)?;
            }
            for folder in host_folders() {
                let inside = folder.strip_prefix("/").unwrap_or(&folder);
                add(&mut tar, Path::new("/"), inside, Modes::Own)?;
            }
        }
    }
    tar.into_inner()?.flush()
}

/// Which modes files have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Modes {
    /// All the same.
    Usual,
    /// Their own, but that none changes who runs it.
    Own,
}

fn add(
    tar: &mut tar::Builder<impl Write>,
    folder: &Path,
    inside: &Path,
    modes: Modes,
) -> io::Result<()> {
    // What this user may not read, no program of this user's needs.
    let entries = match fs::read_dir(folder.join(inside)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        entries => entries?,
    };
    let mut names = entries
        .map(|entry| Ok(entry?.file_name()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
    for name in names {
        let inside = inside.join(name);
        let path = folder.join(&inside);
        let found = fs::symlink_metadata(&path)?;
        let kind = found.file_type();
        let mut header = tar::Header::new_gnu();
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(0);
        let mode = |usual: u32| match modes {
            Modes::Usual => usual,
            Modes::Own => found.permissions().mode() & 0o777,
        };
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
            header.set_mode(if is_own { 0o777 } else { mode(0o755) });
            tar.append_data(&mut header, &inside, io::empty())?;
            add(tar, folder, &inside, modes)?;
        } else if kind.is_file() {
            let file = match fs::File::open(&path) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
                file => file?,
            };
            header.set_mode(mode(0o644));
            header.set_size(found.len());
            tar.append_data(&mut header, &inside, file.take(found.len()))?;
        }
    }
    Ok(())
}
