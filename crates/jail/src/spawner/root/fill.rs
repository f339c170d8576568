//! What lies in a root: the host's trees, devices, parts of /etc, and the cells' own root.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{MountFlags, MoveMountFlags, mount, move_mount};

use super::trees::{DATA, Opened, Role, TOP, TREE, clone_mount};
use super::{Granted, Shown};
use crate::policy::Link;
use crate::sys;

/// What of the host is in the root now.
pub struct Filled {
    pub trees: Vec<Shown>,
    pub mounts: Vec<Granted>,
    pub engine: Option<OwnedFd>,
}

/// Lays the root out in the working directory. `links` are the host's own at the top, `last` those of the view.
pub fn fill(
    opened: Vec<Opened>,
    links: &[(PathBuf, PathBuf)],
    last: &[Link],
) -> io::Result<Filled> {
    for folder in ["host/empty", "mask/folder", "mask/facts", "facts", "cell"] {
        fs::create_dir_all(folder)?;
    }
    fs::write("mask/file", "")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount(
        "cell",
        "cell",
        "tmpfs",
        flags,
        c"mode=0755,size=1m,nr_inodes=256",
    )?;
    for folder in ["etc/fonts", "dev/shm", "proc", "tmp", "workspace", "opt"] {
        fs::create_dir_all(Path::new("cell").join(folder))?;
    }
    for (path, target) in links {
        symlink(target, inside(path))?;
    }
    write_etc()?;
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        symlink(target, Path::new("cell/dev").join(name))?;
    }

    let (mut trees, mut mounts, mut engine) = (Vec::new(), Vec::new(), None);
    for Opened { tree, role } in opened {
        let target = match role {
            Role::Engine => {
                engine = Some(tree);
                continue;
            }
            Role::Overlay(path) => {
                fs::create_dir_all(inside(&path))?;
                let name = format!("t{}", trees.len());
                let folder = Path::new("host").join(&name);
                fs::create_dir(&folder)?;
                let target = Path::new("/cell").join(relative(&path));
                trees.push(Shown { name, target });
                folder
            }
            Role::Granted(path, access) => {
                let name = format!("m{}", mounts.len());
                let folder = Path::new("host").join(&name);
                fs::create_dir(&folder)?;
                let granted = Granted {
                    name,
                    target: Path::new("/cell").join(relative(&path)),
                    access,
                };
                if !granted.is_in_cells_own() {
                    fs::create_dir_all(inside(&path))?;
                }
                mounts.push(granted);
                folder
            }
            Role::Mask => {
                check_null(&tree)?;
                "mask/file".into()
            }
            Role::Device(name) => {
                let path = Path::new("cell/dev").join(name);
                fs::write(&path, "")?;
                path
            }
            Role::Data(path) => {
                let path = inside(Path::new(path));
                let is_folder =
                    rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&tree)?.st_mode).is_dir();
                if is_folder {
                    fs::create_dir_all(&path)?;
                } else {
                    fs::write(&path, "")?;
                }
                path
            }
        };
        attach(&tree, &target)?;
    }
    // SECURITY: after everything that opens paths in the root, so that nothing of ours follows one of these to a path
    // of the host. One whose path is taken by a tree or a granted folder stops the start.
    for link in last {
        symlink(&link.target, inside(&link.path))?;
    }
    // What lies over folders of /proc must not be writable either.
    bind_restricted("mask/folder", "mask/folder", DATA)?;
    bind_restricted("facts", "mask/facts", DATA)?;
    // The folder alone: the devices in it must stay devices.
    let cell = rustix::fs::open("cell", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    sys::restrict_mount(cell.as_fd(), TREE, false)?;
    Ok(Filled {
        trees,
        mounts,
        engine,
    })
}

/// Makes sure that what will mask files is the null device.
fn check_null(tree: &OwnedFd) -> io::Result<()> {
    // SECURITY: masks with a swapped source were CVE-2025-31133 elsewhere.
    if rustix::fs::fstat(tree)?.st_rdev != rustix::fs::makedev(1, 3) {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    Ok(())
}

pub fn attach(tree: &OwnedFd, target: &Path) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(move_mount(tree, "", CWD, target, flags)?)
}

/// Binds a folder under `attributes`, which later binds of it inherit.
fn bind_restricted(path: &str, target: &str, attributes: u64) -> io::Result<()> {
    let tree = clone_mount(Path::new(path), attributes)?;
    attach(&tree, Path::new(target))
}

/// The links at the top of the host's own root, as they are on a merged system.
pub fn top_links() -> Vec<(PathBuf, PathBuf)> {
    TOP.iter()
        .filter_map(|top| Some((PathBuf::from(top), fs::read_link(top).ok()?)))
        .collect()
}

fn write_etc() -> io::Result<()> {
    let root = Path::new("cell/etc");
    for (name, text) in [
        (
            "passwd",
            "nobody:x:65534:65534:nobody:/workspace/.home:/bin/sh\n",
        ),
        ("group", "nogroup:x:65534:\n"),
        ("hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"),
        ("hostname", "sandbox\n"),
        (
            "nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files dns\n",
        ),
        ("resolv.conf", ""),
        ("fonts/fonts.conf", FONTS),
    ] {
        fs::write(root.join(name), text)?;
    }
    Ok(())
}

/// Which fonts there are, and where a cell keeps its list of them: fontconfig complains to a program's stderr without such a
/// file. The host's own may name folders that a cell does not have.
const FONTS: &str = r#"<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts</dir>
  <dir>/usr/local/share/fonts</dir>
  <dir prefix="xdg">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
  <include ignore_missing="yes">/usr/share/fontconfig/conf.avail/30-metric-aliases.conf</include>
  <include ignore_missing="yes">/usr/share/fontconfig/conf.avail/45-latin.conf</include>
  <include ignore_missing="yes">/usr/share/fontconfig/conf.avail/49-sansserif.conf</include>
  <include ignore_missing="yes">/usr/share/fontconfig/conf.avail/60-latin.conf</include>
  <include ignore_missing="yes">/usr/share/fontconfig/conf.avail/65-nonlatin.conf</include>
</fontconfig>
"#;

fn inside(path: &Path) -> PathBuf {
    Path::new("cell").join(relative(path))
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}
