//! The private root that a spawner builds once and its cells start from.
//!
//! ```text
//! /host/usr, /host/t0 …   the shown trees, read-only          ┐ outside the root of
//! /host/m0 …              granted folders, as they are        │
//! /host/empty, /host/o    layers of overlays, and overlays    │ the cells: they are
//! /mask/{file,folder}     what lies over parts of /proc       │ chrooted into /cell and
//! /facts/<slot>/          files that show a cell its limits,  │ see none of these
//! /mask/facts             and the same folder read-only       │
//! /proc                   a procfs without a process in it    ┘
//! /cell                   the cells' root, read-only: /etc, /dev, and empty mount points
//! ```
//!
//! Nothing of the host but the shown trees and the granted folders is reachable from here.

mod fill;
mod proc_files;
mod trees;

use std::collections::HashMap;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};

use self::fill::Filled;
pub use self::proc_files::Machine;
use self::trees::Opened;
pub use self::trees::{attributes, open_trees};
use super::masks::{self, Mask};
use super::setup_child::SetupChild;
use crate::error::{Failed, step};
use crate::init;
use crate::policy::{Access, Limits};
use crate::spec::SpawnerSpec;

/// A built root, in the spawner and in the first moments of a cell.
pub struct Root {
    /// Where it is: at first where it was built, then at `/`.
    pub(super) at: &'static Path,
    /// The host's /proc, through which a process writes its own id maps.
    pub host_proc: OwnedFd,
    /// Ends, as cells see it, when the spawner does.
    pub lifeline: OwnedFd,
    pub(super) alive: OwnedFd,
    pub trees: Vec<Shown>,
    pub mounts: Vec<Granted>,
    /// The slots that have an overlay over each tree, or why they have none.
    pub(super) overlaid: HashMap<u32, Result<(), i32>>,
    pub masks: Vec<Mask>,
    /// Our own binary, on a read-only mount that has no path anywhere.
    pub engine: Option<OwnedFd>,
    pub(super) processor: String,
    pub(super) kernel: String,
    /// What the cells of each slot read in /proc of the machine.
    pub(super) proc_files: HashMap<u32, Machine>,
}

/// A tree of the host in the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The folder's name below /host.
    pub name: String,
    /// Where it appears, as the spawner sees it: `/cell/usr`.
    pub target: PathBuf,
}

/// A granted folder of the host in the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// Its name below /host, and where it appears: `/cell/data`.
    pub name: String,
    pub target: PathBuf,
    pub access: Access,
}

impl Granted {
    /// Where it is in the root, outside of what cells see.
    pub fn source(&self) -> PathBuf {
        Path::new("/host").join(&self.name)
    }

    /// Its path as a program sees it.
    pub fn path(&self) -> PathBuf {
        let path = self.target.strip_prefix("/cell").unwrap_or(&self.target);
        Path::new("/").join(path)
    }

    /// Whether it lies in a file system that each cell has of its own.
    pub fn is_in_cells_own(&self) -> bool {
        ["/cell/workspace", "/cell/tmp"]
            .iter()
            .any(|own| self.target.starts_with(own))
    }
}

pub fn open_host_proc() -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/proc", flags, Mode::empty())?)
}

/// A root that is built, but not moved into.
pub struct Building {
    root: Root,
    child: SetupChild,
}

impl Building {
    /// The granted folders in it.
    pub fn mounts(&self) -> &[Granted] {
        &self.root.mounts
    }

    /// Moves this process into the root for good, and into a network namespace of
    /// its own, which is the second answer.
    pub fn finish(self) -> Result<(Root, io::Result<OwnedFd>), Failed> {
        let Self { mut root, child } = self;
        let network = child.finish();
        step("switching to the root", || {
            rustix::process::pivot_root(".", ".")?;
            unmount(".", UnmountFlags::DETACH)?;
            Ok(rustix::process::chdir("/")?)
        })?;
        root.at = Path::new("/");
        Ok((root, network))
    }
}

impl Root {
    /// Builds the root, while `child` makes a network namespace.
    pub fn begin(
        spec: &SpawnerSpec,
        opened: Option<Vec<Opened>>,
        host_proc: OwnedFd,
        child: SetupChild,
    ) -> Result<Building, Failed> {
        step("keeping mounts private", || {
            let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
            Ok(mount_change("/", flags)?)
        })?;
        let opened = match opened {
            Some(opened) => opened,
            None => step("opening the visible folders", || open_trees(&spec.view))?,
        };
        let links = fill::top_links();
        let masks = masks::find(Path::new("/proc"));
        let processor = proc_files::first_processor();
        let kernel = rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned();
        // Any folder that exists will do: it is hidden in our namespace only.
        step("mounting the root", || {
            let flags = MountFlags::NOSUID | MountFlags::NODEV;
            mount(
                "root",
                "/tmp",
                "tmpfs",
                flags,
                c"mode=0755,size=16m,nr_inodes=8k",
            )?;
            Ok(rustix::process::chdir("/tmp")?)
        })?;
        step("making room for /proc", || {
            fs::create_dir("proc")?;
            child.mount_proc(host_proc.as_fd(), "/tmp/proc")
        })?;
        let Filled {
            trees,
            mounts,
            engine,
        } = step("filling the root", || {
            fill::fill(opened, &links, &spec.view.links)
        })?;
        let (lifeline, alive) = step("making the lifeline", || {
            Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
        })?;
        let mut root = Self {
            at: Path::new("/tmp"),
            host_proc,
            lifeline,
            alive,
            trees,
            mounts,
            overlaid: HashMap::new(),
            masks,
            engine,
            processor,
            kernel,
            proc_files: HashMap::new(),
        };
        // While the child is at work: what the first cell will most likely need. Else
        // it is told when it asks.
        let _ = root.lay_overlays(0);
        let usual = Limits::default();
        if let Ok(processors) = init::processors(usual.cpus, spec.has_cgroups) {
            let machine = Machine {
                memory: usual.memory,
                processors: processors.len(),
            };
            let _ = root.write_proc_files(0, machine);
        }
        Ok(Building { root, child })
    }

    /// Lays an overlay over each tree for the cells of `slot`, one after the other.
    ///
    /// Two cells at a time that see the same inodes could signal each other by locks and
    /// watches on them. Kept from cell to cell, with all the names the kernel knows in it.
    pub fn lay_overlays(&mut self, slot: u32) -> Result<(), i32> {
        let lay = || -> io::Result<()> {
            // Relative names, because the options are shown in the program's mountinfo.
            rustix::process::chdir(self.at.join("host"))?;
            let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
            for tree in &self.trees {
                let folder = format!("o/{slot}/{}", tree.name);
                fs::create_dir_all(&folder)?;
                let options = CString::new(format!("lowerdir={}:empty,userxattr", tree.name))?;
                mount("overlay", &folder, "overlay", flags, &*options)?;
            }
            Ok(())
        };
        let at = self.at;
        *self.overlaid.entry(slot).or_insert_with(|| {
            let laid = lay();
            // We move into the root from there.
            let laid = rustix::process::chdir(at).map_err(Into::into).and(laid);
            laid.map_err(|error| error.raw_os_error().unwrap_or(0))
        })
    }

    /// Takes those of `slot` off, in the mount namespace that we are in.
    pub fn take_off_overlays(&self, slot: u32) {
        for tree in &self.trees {
            if let Some(overlay) = self.overlay(tree, slot) {
                let _ = unmount(overlay, UnmountFlags::DETACH);
            }
        }
    }

    /// Lays another mount of a granted folder over it, in the mount namespace that we are in.
    pub fn cover(&self, granted: &Granted, tree: &OwnedFd) -> io::Result<()> {
        fill::attach(tree, &granted.source())
    }

    /// Opens the mount namespace that we are in.
    pub fn open_mounts(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(
            &self.host_proc,
            "self/ns/mnt",
            flags,
            Mode::empty(),
        )?)
    }

    /// What our memory holds, as the kernel tells it.
    pub fn own_smaps(&self) -> io::Result<String> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.host_proc, "self/smaps", flags, Mode::empty())?;
        io::read_to_string(fs::File::from(file))
    }

    /// Where the overlay over `tree` for the cells of `slot` is, if there is one.
    pub fn overlay(&self, tree: &Shown, slot: u32) -> Option<String> {
        let laid = self.overlaid.get(&slot).is_some_and(Result::is_ok);
        laid.then(|| format!("/host/o/{slot}/{}", tree.name))
    }
}
