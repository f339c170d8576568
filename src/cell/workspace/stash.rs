//! The files of a branch of a session that does not run: out of sight, in a folder of the same file system.
//!
//! Moved by renames, so whatever is open stays open; copied for a new branch. SECURITY: the cell stands still meanwhile, but what is found
//! was put there by its program: every folder is reached through the descriptor of the one above it, no link is followed, no other file
//! system is entered, and depth and number are bounded. Bytes are bounded by the workspace itself.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, fchmod, fstat, mkdirat, openat2, readlinkat,
    renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::{FileIds, beneath, make_folder, open_folder};

/// Where stashes are, below the workspace.
const FOLDER: &str = ".home/.hotcell/branches";
const MOST_FOLDERS_DEEP: usize = 64;
/// Of a branch, at most.
const MOST_ENTRIES: usize = 100_000;

/// A folder with all files of a branch.
#[derive(Debug)]
pub struct Stash {
    /// Closed to everybody while nothing is done with it, so that no search of the workspace finds them.
    folder: OwnedFd,
    name: String,
}

/// The two folders whose entries are a branch's own.
struct Place {
    top: OwnedFd,
    home: OwnedFd,
}

/// Copies all files of the workspace into a new stash, as `uid` if one is given. Blocks.
pub fn copy_files(workspace: BorrowedFd<'_>, uid: Option<u32>) -> io::Result<Stash> {
    let _ids = uid.map(FileIds::assume).transpose()?;
    let (stash, to) = Stash::make(workspace)?;
    let mut room = MOST_ENTRIES;
    let copied = Place::of_workspace(workspace).and_then(|from| {
        let [(top, home), (to_top, to_home)] =
            [&from, &to].map(|it| (it.top.as_fd(), it.home.as_fd()));
        copy(top, to_top, Some(c".home"), (0, &mut room))?;
        copy(home, to_home, Some(c".hotcell"), (0, &mut room))
    });
    match copied {
        Ok(()) => stash.close(),
        Err(error) => {
            stash.remove_from(workspace);
            Err(error)
        }
    }
}

/// Takes all files out of the workspace and puts those of `stash` there; where they are now. Blocks.
pub fn swap_files(workspace: BorrowedFd<'_>, uid: Option<u32>, stash: &Stash) -> io::Result<Stash> {
    let _ids = uid.map(FileIds::assume).transpose()?;
    let place = Place::of_workspace(workspace)?;
    let (old, to) = Stash::make(workspace)?;
    place.move_to(&to)?;
    stash.open()?.move_to(&place)?;
    stash.remove_from(workspace);
    old.close()
}

/// Removes a stash with all that is in it. Blocks.
pub fn remove_files(workspace: BorrowedFd<'_>, uid: Option<u32>, stash: &Stash) -> io::Result<()> {
    let _ids = uid.map(FileIds::assume).transpose()?;
    stash.open()?;
    stash.remove_from(workspace);
    Ok(())
}

impl Stash {
    fn make(workspace: BorrowedFd<'_>) -> io::Result<(Self, Place)> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let parent = make_folder(workspace, Path::new(FOLDER))?;
        let name = NEXT.fetch_add(1, Ordering::Relaxed).to_string();
        let private = Mode::from_raw_mode(0o700);
        mkdirat(&parent, &name, private)?;
        let folder = open_folder(parent.as_fd(), &name)?;
        for inner in ["top", "home"] {
            mkdirat(&folder, inner, private)?;
        }
        let stash = Self { folder, name };
        let place = stash.open()?;
        Ok((stash, place))
    }

    fn open(&self) -> io::Result<Place> {
        fchmod(&self.folder, Mode::from_raw_mode(0o700))?;
        Ok(Place {
            top: open_folder(self.folder.as_fd(), "top")?,
            home: open_folder(self.folder.as_fd(), "home")?,
        })
    }

    fn close(self) -> io::Result<Self> {
        fchmod(&self.folder, Mode::empty())?;
        Ok(self)
    }

    /// What cannot be removed stays until the cell ends.
    fn remove_from(&self, workspace: BorrowedFd<'_>) {
        remove(self.folder.as_fd(), 0);
        if let Ok(parent) = open_folder(workspace, FOLDER) {
            let _ = unlinkat(&parent, &*self.name, AtFlags::REMOVEDIR);
        }
    }
}

impl Place {
    /// `.home` is there for all branches, and `.home/.hotcell` is ours.
    fn of_workspace(workspace: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Self {
            top: open_folder(workspace, "")?,
            home: open_folder(workspace, ".home")?,
        })
    }

    fn move_to(&self, to: &Self) -> io::Result<()> {
        move_entries(&self.top, &to.top, c".home")?;
        move_entries(&self.home, &to.home, c".hotcell")
    }
}

fn move_entries(from: &OwnedFd, to: &OwnedFd, except: &CStr) -> io::Result<()> {
    for (name, kind) in entries(from.as_fd())? {
        let is_folder = kind == FileType::Directory;
        // A folder of the host that was granted stays where it is, for all branches.
        if *name == *except || is_folder && is_mount(from.as_fd(), &name) {
            continue;
        }
        renameat_with(from, &*name, to, &*name, RenameFlags::NOREPLACE)?;
    }
    Ok(())
}

fn is_mount(folder: BorrowedFd<'_>, name: &CStr) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat2(folder, name, flags, Mode::empty(), beneath());
    matches!(opened, Err(Errno::XDEV))
}

/// Copies the files, folders and links of a folder, with their modes and times. Others are nothing that could be copied.
fn copy(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    except: Option<&CStr>,
    (depth, room): (usize, &mut usize),
) -> io::Result<()> {
    if depth > MOST_FOLDERS_DEEP {
        return Err(io::Error::other("its folders are too deep"));
    }
    for (name, kind) in entries(from)? {
        if Some(&*name) == except {
            continue;
        }
        *room = room
            .checked_sub(1)
            .ok_or_else(|| io::Error::other("there are too many files"))?;
        match kind {
            FileType::Directory => {
                let inner = match open_in(from, &name, OFlags::DIRECTORY) {
                    Err(Errno::XDEV) => continue,
                    inner => inner?,
                };
                mkdirat(to, &*name, Mode::from_raw_mode(0o700))?;
                let copied = open_in(to, &name, OFlags::DIRECTORY)?;
                copy(inner.as_fd(), copied.as_fd(), None, (depth + 1, room))?;
                let mode = fstat(&inner)?.st_mode;
                fchmod(&copied, Mode::from_raw_mode(mode & 0o7777))?;
            }
            FileType::RegularFile => copy_file(from, to, &name)?,
            FileType::Symlink => symlinkat(&*readlinkat(from, &*name, Vec::new())?, to, &*name)?,
            _ => {}
        }
    }
    Ok(())
}

fn copy_file(from: BorrowedFd<'_>, to: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    let source = File::from(open_in(from, name, OFlags::NONBLOCK)?);
    let found = source.metadata()?;
    if !found.is_file() {
        return Ok(());
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(found.permissions().mode() & 0o7777);
    let target = File::from(openat2(
        to,
        name,
        flags,
        Mode::from_raw_mode(0o600),
        beneath(),
    )?);
    io::copy(&mut &source, &mut &target)?;
    fchmod(&target, mode)?;
    // A file that nobody has written to since is known by its time.
    target.set_modified(found.modified()?)
}

/// Removes what is in a folder, as far as that can be opened.
fn remove(folder: BorrowedFd<'_>, depth: usize) {
    for (name, kind) in entries(folder).unwrap_or_default() {
        let flags = match kind {
            FileType::Directory => AtFlags::REMOVEDIR,
            _ => AtFlags::empty(),
        };
        if kind == FileType::Directory {
            match open_in(folder, &name, OFlags::DIRECTORY) {
                Ok(inner) if depth <= MOST_FOLDERS_DEEP => remove(inner.as_fd(), depth + 1),
                // One of another file system must not vanish from the cell.
                _ => continue,
            }
        }
        let _ = unlinkat(folder, &*name, flags);
    }
}

fn open_in(folder: BorrowedFd<'_>, name: &CStr, more: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | more;
    openat2(folder, name, flags, Mode::empty(), beneath())
}

fn entries(folder: BorrowedFd<'_>) -> io::Result<Vec<(std::ffi::CString, FileType)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            found.push((name.to_owned(), entry.file_type()));
        }
        if found.len() > MOST_ENTRIES {
            return Err(io::Error::other("there are too many files"));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_copied_swapped_and_removed_and_no_link_is_followed() {
        let outside = tempfile::TempDir::new().unwrap();
        fs::write(outside.path().join("secret"), "untouched").unwrap();
        let folder = tempfile::TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at(".home/.hotcell")).unwrap();
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/b/c"), "one").unwrap();
        fs::write(at(".home/own"), "one").unwrap();
        symlink(outside.path(), at("link")).unwrap();
        let opened = File::open(folder.path()).unwrap();
        let workspace = opened.as_fd();
        let text = |name: &str| fs::read_to_string(at(name)).ok();

        let kept = copy_files(workspace, None).unwrap();
        fs::write(at("a/b/c"), "two").unwrap();
        fs::write(at("new"), "two").unwrap();
        fs::write(at(".home/own"), "two").unwrap();
        let mode = fs::metadata(at(".home/.hotcell/branches").join(&kept.name)).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0);

        let second = swap_files(workspace, None, &kept).unwrap();
        assert_eq!(text("a/b/c").as_deref(), Some("one"));
        assert_eq!(text(".home/own").as_deref(), Some("one"));
        assert_eq!(text("new"), None);
        assert_eq!(fs::read_link(at("link")).unwrap(), outside.path());

        let first = swap_files(workspace, None, &second).unwrap();
        assert_eq!(
            (text("a/b/c"), text("new")),
            (Some("two".into()), Some("two".into()))
        );
        remove_files(workspace, None, &first).unwrap();
        assert_eq!(
            fs::read_dir(at(".home/.hotcell/branches")).unwrap().count(),
            0
        );
        let secret = fs::read_to_string(outside.path().join("secret")).unwrap();
        assert_eq!(secret, "untouched");

        // Where a folder of ours was, a link leads nowhere.
        fs::remove_dir_all(at(".home/.hotcell")).unwrap();
        symlink(outside.path(), at(".home/.hotcell")).unwrap();
        assert!(copy_files(workspace, None).is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }
}
