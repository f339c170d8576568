//! What lies in a root: the host's trees, devices, and what the cells' own root has at first.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{MoveMountFlags, move_mount};

use super::trees::{DATA, Opened, Role, TOP, clone_mount};
use super::{Granted, Shown, etc};
use crate::devices;
use crate::policy::Link;

/// What of the host is in the root now.
pub struct Filled {
    pub trees: Vec<Shown>,
    pub mounts: Vec<Granted>,
    pub engine: Option<OwnedFd>,
}

/// Files of the host's /etc that programs need and that tell nothing of the host.
const ETC: [&str; 2] = ["ld.so.cache", "localtime"];

/// Lays the root out in the working directory. `links` are the host's own at the top, `last` those of the view.
pub fn fill(
    opened: Vec<Opened>,
    links: &[(PathBuf, PathBuf)],
    last: &[Link],
) -> io::Result<Filled> {
    for folder in ["host/cell-empty", "host/dev", "mask", "facts", "cell"] {
        fs::create_dir_all(folder)?;
    }
    for folder in ["etc/fonts", "dev", "proc", "tmp", "workspace", "opt"] {
        fs::create_dir_all(inside(Path::new(folder)))?;
    }
    for (path, target) in links {
        symlink(target, inside(path))?;
    }
    write_etc(&inside(Path::new("etc")))?;
    devices::fill_folder(fs::File::open(inside(Path::new("dev")))?)?;

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
                let empty = Path::new("host").join(empty_layer(&name));
                fs::create_dir(&empty)?;
                let mode = rustix::fs::fstat(&tree)?.st_mode & 0o777;
                fs::set_permissions(&empty, fs::Permissions::from_mode(mode))?;
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
            Role::Device(name) => {
                fs::write(inside(Path::new("dev")).join(name), "")?;
                let path = Path::new("host/dev").join(name);
                fs::write(&path, "")?;
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
    // What lies over parts of /proc must not be writable.
    let tree = clone_mount(Path::new("facts"), DATA)?;
    attach(&tree, Path::new("mask"))?;
    Ok(Filled {
        trees,
        mounts,
        engine,
    })
}

/// The empty folder that lies over the folder `name` in its overlay.
pub fn empty_layer(name: &str) -> String {
    format!("{name}-empty")
}

pub fn attach(tree: &OwnedFd, target: &Path) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(move_mount(tree, "", CWD, target, flags)?)
}

/// The links at the top of the host's own root, as they are on a merged system.
pub fn top_links() -> Vec<(PathBuf, PathBuf)> {
    TOP.iter()
        .filter_map(|top| Some((PathBuf::from(top), fs::read_link(top).ok()?)))
        .collect()
}

/// Fills the folder /etc.
fn write_etc(root: &Path) -> io::Result<()> {
    for (name, text) in [
        ("passwd", etc::PASSWD),
        ("group", etc::GROUP),
        ("services", etc::SERVICES),
        ("protocols", etc::PROTOCOLS),
        ("hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"),
        ("hostname", "sandbox\n"),
        ("nsswitch.conf", etc::NSSWITCH),
        ("resolv.conf", ""),
        ("fonts/fonts.conf", FONTS),
    ] {
        fs::write(root.join(name), text)?;
    }
    // Copies: whoever sees an inode of the host can lock it, and watch who opens it. What nobody may read is left out.
    for name in ETC {
        let _ = fs::copy(Path::new("/etc").join(name), root.join(name));
    }
    etc::copy_linked(root)
}

/// Lays out the root of a container in an empty folder: what a cell's has, but for what the engine mounts there.
pub fn lay_bare(root: &Path, links: &[Link]) -> io::Result<()> {
    for folder in [
        "etc/fonts",
        "dev",
        "proc",
        "sys",
        "tmp",
        "workspace",
        "opt",
        "usr",
        "run/hotcell",
    ] {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::write(root.join("run/hotcell-init"), "")?;
    for (path, target) in top_links() {
        symlink(target, root.join(relative(&path)))?;
    }
    write_etc(&root.join("etc"))?;
    // Last, as above.
    for link in links {
        symlink(&link.target, root.join(relative(&link.path)))?;
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

/// Where a path of the cells' root is made: below all of their overlays.
fn inside(path: &Path) -> PathBuf {
    Path::new("host/cell").join(relative(path))
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}
