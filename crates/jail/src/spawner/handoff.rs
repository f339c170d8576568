//! How a spawner becomes a runtime that makes cells of itself: a zygote.
//!
//! The spawner has built its root and moved in. It mounts the runtime's own view of the trees
//! there, writes down what it knows ([`Handoff`]) and execs the runtime with the library in
//! front of its libc, which goes on as the same spawner ([`ZygoteSpawner`]).

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::mount::mount_bind_recursive;
use rustix::pipe::{PipeFlags, pipe_with};

use super::idmap::IdMapper;
use super::masks::Mask;
use super::network::Network;
use super::owner::OwnerMapper;
use super::root::{Granted, Root, Shown, lay_overlay};
use super::{Spawner, give_up};
use crate::codec::{self, fields, garbled, read_memory_file};
use crate::error::{Failed, step};
use crate::init::{Filters, Hooks, Image, c_strings};
use crate::prestart::{Inherited, RoleSpec, Runtime, TaskSpec, environment};
use crate::spec::Missing;
use crate::sys;

const LIBRARY: &str = "/zygote.so";
const WORKSPACE: &str = "/workspace";

/// Becomes the runtime. Returns only if that failed.
pub fn exec(spawner: &Spawner, control: &OwnedFd, runtime: &Runtime) -> Failed {
    let zygote = &runtime.zygote;
    let prepared = step("preparing the zygote's root", || {
        mount_view(&spawner.root, &zygote.script, &runtime.library)
    });
    let started = prepared.and_then(|()| {
        let task = step("writing the zygote's task", || {
            let task = TaskSpec {
                zygote: zygote.clone(),
                role: RoleSpec::Spawner(Handoff::new(spawner, control)?),
            };
            Inherited::leave(&codec::to_memory_file(&task)?, ABOVE_STREAMS)
        })?;
        step("setting the zygote's streams", || {
            // Its cells have its signals too, and not those that our starter ignored.
            sys::reset_signals()?;
            take_streams(zygote.has_input)
        })?;
        step("starting the zygote", || {
            let argv = c_strings(&zygote.argv)?;
            let env = environment(&zygote.env, LIBRARY, task.number())?;
            let path = argv.first().ok_or(io::ErrorKind::InvalidInput)?;
            Err(sys::exec(path, &argv, &env))
        })
    });
    match started {
        Ok(never) => never,
        Err(failed) => failed,
    }
}

/// Mounts the trees where cells see them: /proc tells the paths of what the runtime has
/// mapped by this root, for as long as its memory lives.
fn mount_view(root: &Root, script: &OsStr, library: &OwnedFd) -> io::Result<()> {
    for entry in fs::read_dir("/cell")? {
        let entry = entry?;
        if entry.file_type()?.is_symlink() {
            symlink(
                fs::read_link(entry.path())?,
                Path::new("/").join(entry.file_name()),
            )?;
        }
    }
    symlink("cell/etc", "/etc")?;
    symlink("host/dev", "/dev")?;
    rustix::process::chdir("/host")?;
    for tree in &root.trees {
        let path = tree.target.strip_prefix("/cell").map_err(|_| garbled())?;
        if path.starts_with("etc") {
            continue;
        }
        let path = Path::new("/").join(path);
        fs::create_dir_all(&path)?;
        // SECURITY: /proc/self/exe leads there from all of its cells. On the host's own file, they could watch who starts it.
        if lay_overlay(&tree.name, &path).is_err() {
            mount_bind_recursive(&tree.name, &path)?;
        }
    }
    // The runtime asks where its program lies before it opens it.
    fs::create_dir_all(WORKSPACE)?;
    fs::write(Path::new(WORKSPACE).join(script), "")?;
    fs::write(LIBRARY, read_memory_file(library)?)?;
    fs::set_permissions(LIBRARY, fs::Permissions::from_mode(0o755))?;
    Ok(rustix::process::chdir(WORKSPACE)?)
}

/// Standard streams of the kinds that its cells have: a runtime looks at them once.
fn take_streams(has_input: bool) -> io::Result<()> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    match has_input {
        true => sys::dup_as(reader.as_fd(), 0)?,
        false => sys::dup_as(fs::File::open("/dev/null")?.as_fd(), 0)?,
    }
    sys::dup_as(writer.as_fd(), 1)?;
    sys::dup_as(writer.as_fd(), 2)?;
    // A pipe that nobody can read from answers a write with a signal.
    sys::keep_on_exec(reader.as_fd())?;
    std::mem::forget(reader);
    Ok(())
}

const ABOVE_STREAMS: i32 = 3;

/// A [`ZygoteSpawner`] on its way through an exec.
#[derive(Debug, PartialEq)]
pub(crate) struct Handoff {
    control: Inherited,
    host_proc: Inherited,
    lifeline: Inherited,
    alive: Inherited,
    /// The network namespace of the first slot, which we are in.
    network: Option<Inherited>,
    /// Who maps the owners of granted folders.
    owners: Option<Inherited>,
    /// Who gives workspaces to the server's user.
    workspaces: Option<Inherited>,
    /// Whether the first slot has its overlays.
    has_overlays: bool,
    has_range: bool,
    has_cgroups: bool,
    missing: Vec<Missing>,
    trees: Vec<Shown>,
    mounts: Vec<Granted>,
    masks: Vec<Mask>,
    processor: String,
    kernel: String,
}

fields!(Handoff {
    control,
    host_proc,
    lifeline,
    alive,
    network,
    owners,
    workspaces,
    has_overlays,
    has_range,
    has_cgroups,
    missing,
    trees,
    mounts,
    masks,
    processor,
    kernel,
});
fields!(Shown { name, target });
fields!(Granted {
    name,
    target,
    access,
});
fields!(Mask { source, target });

impl Handoff {
    fn new(spawner: &Spawner, control: &OwnedFd) -> io::Result<Self> {
        let root = &spawner.root;
        let leave = |fd: &OwnedFd| Inherited::leave(fd, ABOVE_STREAMS);
        let owners = spawner.owners.as_ref().map(IdMapper::socket);
        let workspaces = spawner.workspaces.as_ref().map(OwnerMapper::socket);
        let network = spawner.networks.get(&0).map(Network::namespace);
        Ok(Self {
            control: leave(control)?,
            host_proc: leave(&root.host_proc)?,
            lifeline: leave(&root.lifeline)?,
            alive: leave(&root.alive)?,
            network: network.map(leave).transpose()?,
            owners: owners.map(leave).transpose()?,
            workspaces: workspaces.map(leave).transpose()?,
            has_overlays: root.overlaid.get(&0).is_some_and(Result::is_ok),
            has_range: spawner.has_range,
            has_cgroups: spawner.filters.has_cgroups,
            missing: spawner.missing.clone(),
            trees: root.trees.clone(),
            mounts: root.mounts.clone(),
            masks: root.masks.clone(),
            processor: root.processor.clone(),
            kernel: root.kernel.clone(),
        })
    }

    /// Goes on as the spawner that was handed over.
    pub fn take(self) -> io::Result<ZygoteSpawner> {
        let network = self.network.map(Inherited::take).transpose()?;
        let filters = Filters::of(self.has_cgroups, &self.mounts);
        let root = Root {
            at: Path::new("/"),
            host_proc: self.host_proc.take()?,
            lifeline: self.lifeline.take()?,
            alive: self.alive.take()?,
            trees: self.trees,
            mounts: self.mounts,
            overlaid: self
                .has_overlays
                .then_some((0, Ok(())))
                .into_iter()
                .collect(),
            devices: HashMap::new(),
            masks: self.masks,
            // A zygote's cells go on with its own image.
            engine: None,
            processor: self.processor,
            kernel: self.kernel,
            proc_files: HashMap::new(),
        };
        let networks = network.map(|network| (0, Network::of(network, &root.host_proc)));
        let image = Image::own(&root.host_proc)?;
        let spawner = Spawner {
            hooks: None,
            image: Some(image),
            runtime: None,
            root,
            filters,
            has_range: self.has_range,
            networks: networks.into_iter().collect(),
            mounts: HashMap::new(),
            owners: self
                .owners
                .map(Inherited::take)
                .transpose()?
                .map(Into::into),
            workspaces: self
                .workspaces
                .map(Inherited::take)
                .transpose()?
                .map(Into::into),
            inside: Some(0),
            missing: self.missing,
        };
        Ok(ZygoteSpawner {
            spawner,
            control: self.control.take()?,
        })
    }
}

/// The spawner that a pre-started runtime is, as the library in that runtime has it.
pub struct ZygoteSpawner {
    spawner: Spawner,
    control: OwnedFd,
}

impl ZygoteSpawner {
    /// The `smaps` of this process. There is no other way to them: the root has no /proc
    /// that knows us.
    pub fn own_smaps(&self) -> io::Result<String> {
        self.spawner.root.own_smaps()
    }

    /// Tells the server why there will be no cells, and ends.
    pub fn give_up(self, failed: Failed) -> ! {
        give_up(&self.control, failed)
    }

    /// Makes cells of this process until the server is gone. Returns in the worker of each
    /// cell, at its start message, behind all of its walls.
    pub fn make_cells(mut self, hooks: Hooks) {
        self.spawner.hooks = Some(hooks);
        self.spawner.work(&self.control);
        // The worker's file descriptors are closed already.
        std::mem::forget(self.control);
    }
}

#[cfg(test)]
impl Handoff {
    /// One of everything, for tests.
    pub fn example() -> Self {
        use crate::policy::Access;
        use crate::spec::Wall;
        let [
            control,
            host_proc,
            lifeline,
            alive,
            network,
            owners,
            workspaces,
        ] = [3, 4, 5, 6, 7, 8, 9].map(Inherited::example);
        Self {
            control,
            host_proc,
            lifeline,
            alive,
            network: Some(network),
            owners: Some(owners),
            workspaces: Some(workspaces),
            has_overlays: true,
            has_range: true,
            has_cgroups: false,
            missing: vec![Missing {
                wall: Wall::Proc,
                errno: libc::EPERM,
            }],
            trees: vec![Shown {
                name: "t0".to_owned(),
                target: "/cell/usr".into(),
            }],
            mounts: vec![Granted {
                name: "m0".to_owned(),
                target: "/cell/data".into(),
                access: Access::Write,
            }],
            masks: vec![Mask {
                source: "none".to_owned(),
                target: "/cell/proc/keys".into(),
            }],
            processor: "vendor_id\t: x\n".to_owned(),
            kernel: "6.1".to_owned(),
        }
    }
}
