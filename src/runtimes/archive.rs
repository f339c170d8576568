//! Unpacking: wheels, npm's tarballs, Debian's packages.
//!
//! An archive says where its files go, so each name is checked here and nothing
//! is left to the libraries: files and folders are made first, without following
//! any link, and links last of all, when nothing is written through them any more.

mod deb;
mod tree;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::FetchError;
use super::recipe::{Archive, Inside};
use tree::{Kind, Tree};

/// Why unpacking stopped.
#[derive(Debug)]
enum Stop {
    /// The archive is not what an honest one would be.
    Hostile(String),
    /// The archive is broken.
    Broken(io::Error),
    /// Our disk.
    Disk(io::Error),
}

/// Unpacks what the recipe takes of `file` into the folder `tree`.
pub fn unpack(archive: &Archive, file: &Path, tree: &Path) -> Result<(), FetchError> {
    let name = || archive.file.clone();
    read(archive, file, tree).map_err(|stop| match stop {
        Stop::Hostile(why) => FetchError::Hostile { file: name(), why },
        Stop::Broken(source) => FetchError::BadArchive {
            file: name(),
            source,
        },
        Stop::Disk(source) => FetchError::Disk {
            path: tree.to_owned(),
            source,
        },
    })
}

fn read(archive: &Archive, file: &Path, folder: &Path) -> Result<(), Stop> {
    let tree = Tree::new(archive, folder);
    let from = File::open(file).map_err(Stop::Disk)?;
    // By the name: the registry decides which kinds there are.
    let ends = |ending: &str| archive.file.ends_with(ending);
    if ends(".whl") || ends(".zip") {
        zip(from, tree)
    } else if ends(".tgz") || ends(".tar.gz") {
        tar(MultiGzDecoder::new(io::BufReader::new(from)), tree)
    } else if ends(".deb") {
        deb::unpack(from, tree)
    } else {
        Err(Stop::Hostile("its kind is not known".to_owned()))
    }
}

fn tar(from: impl Read, mut tree: Tree<'_>) -> Result<(), Stop> {
    let mut entries = ::tar::Archive::new(from);
    for entry in entries.entries().map_err(Stop::Broken)? {
        let mut entry = entry.map_err(Stop::Broken)?;
        let path = inside(&entry.path_bytes())?;
        let link = entry.link_name_bytes().map(|name| text(&name));
        let link = link.transpose()?.unwrap_or_default();
        let header = entry.header();
        let mode = header.mode().map_err(Stop::Broken)?;
        use ::tar::EntryType;
        match header.entry_type() {
            EntryType::Directory => tree.add(&path, Kind::Folder)?,
            EntryType::Regular | EntryType::Continuous => {
                tree.add(&path, Kind::File(mode, &mut entry))?;
            }
            EntryType::Symlink => tree.add(&path, Kind::Link(link))?,
            EntryType::Link => tree.add(&path, Kind::Same(inside(link.as_bytes())?))?,
            // Comments.
            EntryType::XGlobalHeader => {}
            other => {
                return Err(Stop::Hostile(format!(
                    "{} is neither a file nor a folder nor a link ({other:?})",
                    path.as_path().display()
                )));
            }
        }
    }
    tree.finish()
}

fn zip(from: File, mut tree: Tree<'_>) -> Result<(), Stop> {
    let broken = |error: ::zip::result::ZipError| Stop::Broken(io::Error::other(error));
    let mut entries = ::zip::ZipArchive::new(from).map_err(broken)?;
    for at in 0..entries.len() {
        let mut entry = entries.by_index(at).map_err(broken)?;
        let path = inside(entry.name_raw())?;
        let mode = entry.unix_mode().unwrap_or(0o644);
        if entry.is_dir() {
            tree.add(&path, Kind::Folder)?;
        } else if entry.is_symlink() {
            let mut target = Vec::new();
            // No path is longer.
            let read = entry.by_ref().take(4096).read_to_end(&mut target);
            read.map_err(Stop::Broken)?;
            tree.add(&path, Kind::Link(text(&target)?))?;
        } else {
            tree.add(&path, Kind::File(mode, &mut entry))?;
        }
    }
    tree.finish()
}

fn inside(name: &[u8]) -> Result<Inside, Stop> {
    Inside::parse(&text(name)?).map_err(Stop::Hostile)
}

fn text(bytes: &[u8]) -> Result<String, Stop> {
    let text = std::str::from_utf8(bytes).map(str::to_owned);
    text.map_err(|_| Stop::Hostile("a name in it is not UTF-8".to_owned()))
}
