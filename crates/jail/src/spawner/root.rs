//! The private root that a spawner builds once and its cells start from.
//!
//! ```text
//! /host/t0 …              the shown trees, read-only          ┐ outside the root of
//! /host/m0 …              granted folders, as they are        │
//! /host/cell, *-empty     layers of overlays                  │ the cells: they are
//! /host/dev               devices of the host                 │ chrooted into /cell and
//! /facts/<slot>/, /mask   what lies over parts of /proc, and  │ see none of these
//!                         the same folder read-only           │
//! /proc                   a procfs without a process in it    ┘
//! /cell                   the cells' root, read-only: /etc, /dev, and empty mount points. In the
//!                         mount namespace of each slot it is an overlay of its own, with one over each tree
//! ```
//!
//! Nothing of the host but the shown trees and the granted folders is reachable from here.

mod etc;
mod fill;
mod proc_files;
mod slot;
mod trees;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};

use self::fill::Filled;
pub use self::fill::lay_bare;
pub use self::proc_files::Machine;
pub use self::slot::lay_overlay;
use self::trees::Opened;
pub use self::trees::{attributes, open_trees, settings, system};
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
    /// The slots whose cells have a root, and why it has no overlays if it has none.
    pub(super) overlaid: HashMap<u32, Result<(), i32>>,
    /// The slots whose cells have devices, and whether these are their own.
    pub(super) devices: HashMap<u32, bool>,
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
                c"mode=0755,size=32m,nr_inodes=8k",
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
            devices: HashMap::new(),
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
}
