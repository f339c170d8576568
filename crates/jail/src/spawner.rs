//! The spawner: the small process that makes cells.
//!
//! It runs in its own user and mount namespace, inside a root that holds nothing
//! but what its cells may see, and away from the host's network. It has one
//! thread, an empty environment and no secrets: a request's [`Policy`] passes
//! through it as an unread memory file.
//!
//! [`Policy`]: crate::policy::Policy

mod handoff;
mod idmap;
pub mod masks;
mod namespaces;
mod network;
mod owner;
pub(crate) mod root;
mod setup_child;
mod start;
mod sweeper;

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::RecvFlags;

pub(crate) use self::handoff::Handoff;
pub use self::handoff::ZygoteSpawner;
use self::idmap::IdMapper;
use self::network::Network;
pub use self::owner::OwnerMapper;
use self::root::Machine;
pub use self::root::{Granted, Root};
pub(crate) use self::setup_child::open_loopback;
use crate::codec;
use crate::error::{Failed, step};
use crate::init::{self, CellFds, Image, NewCell};
use crate::prestart::Runtime;
use crate::spec::{Missing, SpawnRequest, Status, Wall};
use crate::sys::{self, Cloned};
use crate::wire;

/// What the spawner says, with a pidfd, when a sweeper waits; and when all is built.
pub const SWEEPING: &[u8] = b"sweeping";
pub const READY: &[u8] = b"ready";
/// What it says, with its pidfd, once it has moved into a cgroup of its own.
pub const MOVED: &[u8] = b"moved";

/// The spawner's whole life. Returns when the server is gone.
pub fn main() -> ! {
    let control = sys::take_stdin();
    let _ = sys::unblock_signals();
    let failed = match Spawner::start(&control) {
        Ok((spawner, Some(runtime))) if !runtime.zygote.fresh => {
            handoff::exec(&spawner, &control, &runtime)
        }
        Ok((mut spawner, runtime)) => {
            spawner.runtime = runtime;
            spawner.work(&control);
            sys::exit_now(0);
        }
        Err(failed) => failed,
    };
    give_up(&control, failed)
}

/// Says why there will be no cells.
fn give_up(control: &OwnedFd, failed: Failed) -> ! {
    let message = codec::to_bytes(&Status::Failed(failed));
    let _ = wire::send(control.as_fd(), &message, &[]);
    sys::exit_now(1);
}

/// Which side of a request we came back on.
enum Served {
    Spawner,
    /// A cell's worker, with a zygote's image and its program to run.
    Worker,
}

pub struct Spawner {
    /// What a zygote's runtime does in a clone; `None` for cells that exec their program.
    hooks: Option<init::Hooks>,
    /// What that runtime is, as its clones have it too.
    image: Option<Image>,
    /// What each cell pre-starts within its walls.
    runtime: Option<Runtime>,
    root: Root,
    filters: init::Filters,
    /// The uid that a slot's cells have in our user namespace is its number + 1;
    /// without a range it is our own, 0.
    has_range: bool,
    /// One network namespace for each slot, made when it is first used, and again when a cell has left traces in it.
    networks: HashMap<u32, Network>,
    /// One mount namespace for each slot: a cell starts with a copy of all it holds, and
    /// must not pay for the overlays of others. The first slot's is the root's own.
    mounts: HashMap<u32, OwnedFd>,
    /// Lets cells be the owners of granted folders, where they have uids of their own.
    owners: Option<IdMapper>,
    /// Lets the server be the owner of workspaces, where cells have subordinate ids.
    workspaces: Option<OwnerMapper>,
    /// The slot whose namespaces we are in, all of them.
    inside: Option<u32>,
    /// What could not be had, for every cell to report.
    missing: Vec<Missing>,
}

impl Spawner {
    /// Answers requests until the server is gone. Returns in the worker of a zygote's
    /// cell, and nowhere else.
    fn work(mut self, control: &OwnedFd) {
        if wire::send(control.as_fd(), READY, &[]).is_err() {
            sys::exit_now(0);
        }
        loop {
            let message = wire::receive(control.as_fd(), RecvFlags::empty());
            match message.map(|message| message.map(|message| self.serve(message))) {
                // Its file descriptors are closed already, and to free its memory would copy it.
                Ok(Some(Served::Worker)) => return std::mem::forget(self),
                Ok(Some(Served::Spawner)) => {}
                // No room for its file descriptors: that request is lost, the others are not.
                Err(error) if error.raw_os_error() == Some(libc::EMFILE) => {}
                Ok(None) | Err(_) => sys::exit_now(0),
            }
        }
    }

    /// Makes one cell, or says on its status socket why not.
    fn serve(&mut self, message: wire::Message) -> Served {
        let mut fds = message.fds.into_iter().peekable();
        let (Some(policy), Some(stdin), Some(stdout), Some(stderr), Some(status)) =
            (fds.next(), fds.next(), fds.next(), fds.next(), fds.next())
        else {
            return Served::Spawner;
        };
        let Ok(request) = codec::from_bytes::<SpawnRequest>(&message.bytes) else {
            return Served::Spawner;
        };
        let mut fds = CellFds {
            policy,
            stdio: [stdin, stdout, stderr],
            status,
            library: fds.next_if(|_| request.has_library),
            devices: fds.next_if(|_| request.has_devices),
            cgroup_directory: fds.next_if(|_| request.has_cgroup_directory),
            cgroup_files: fds.collect(),
        };
        match self.spawn(&request, &mut fds) {
            Ok(Served::Worker) => {
                // They are closed already.
                std::mem::forget(fds);
                Served::Worker
            }
            Ok(Served::Spawner) => Served::Spawner,
            Err(failed) => {
                let message = codec::to_bytes(&Status::Failed(failed));
                let _ = wire::send(fds.status.as_fd(), &message, &[]);
                Served::Spawner
            }
        }
    }

    fn spawn(&mut self, request: &SpawnRequest, fds: &mut CellFds) -> Result<Served, Failed> {
        let mut missing = self.missing.clone();
        let is_inside = self.inside.take() == Some(request.slot);
        if missing.iter().all(|m| m.wall != Wall::Network) {
            step("entering the network namespace", || {
                self.enter_network(request.slot, is_inside)
            })?;
        }
        if !is_inside {
            step("entering the mount namespace", || {
                self.enter_mounts(request.slot)
            })?;
        }
        self.inside = Some(request.slot);
        if let Some(owners) = &mut self.owners {
            owners.lay(&self.root, request.slot);
        }
        if let Err(errno) = self.root.lay_overlays(request.slot) {
            missing.push(Missing {
                wall: Wall::Overlay,
                errno,
            });
        }
        step("mounting the devices", || {
            self.root
                .put_devices(request.slot, fds.devices.take().as_ref())
        })?;
        let not_root = |wall| Missing {
            wall,
            errno: libc::EPERM,
        };
        if !self.root.has_own_devices(request.slot) {
            missing.push(not_root(Wall::Devices));
        }
        if !self.has_range {
            missing.push(not_root(Wall::Quotas));
        }
        step("writing the files over /proc", || {
            let has_cgroups = self.filters.has_cgroups;
            let machine = Machine {
                memory: request.memory,
                processors: init::processors(request.cpus, has_cgroups)?.len(),
            };
            self.root.write_proc_files(request.slot, machine)
        })?;
        if let Some(workspaces) = &mut self.workspaces {
            step("starting who gives workspaces away", || {
                workspaces.keep(self.root.host_proc.as_fd())
            })?;
        }
        let uid = if self.has_range { request.slot + 1 } else { 0 };
        let cloned = step("making namespaces", || {
            let cgroup = fds.cgroup_directory.take();
            match self.clone_cell(uid, cgroup.as_ref(), &mut missing) {
                // Cloned into its cgroup, it need not join it.
                Ok(cloned) if cgroup.is_some() => {
                    fds.cgroup_files.clear();
                    Ok(cloned)
                }
                // A kernel before 5.7, or a cgroup that we may not use: it joins by itself.
                Err(_) if cgroup.is_some() => self.clone_cell(uid, None, &mut missing),
                cloned => cloned,
            }
        })?;
        match cloned {
            Cloned::Child => {
                init::run(NewCell {
                    fds,
                    root: &self.root,
                    slot: request.slot,
                    uid,
                    workspaces: self.workspaces.as_ref(),
                    filters: &self.filters,
                    begin: self.begin(fds),
                    image: self.image.as_ref(),
                    missing,
                });
                Ok(Served::Worker)
            }
            Cloned::Parent { pidfd, .. } => {
                let message = codec::to_bytes(&Status::Started);
                // A server that is gone needs no answer: the cell ends by itself.
                let _ = wire::send(fds.status.as_fd(), &message, &[pidfd.as_fd()]);
                Ok(Served::Spawner)
            }
        }
    }

    fn begin<'a>(&'a self, fds: &'a CellFds) -> init::Begin<'a> {
        match (self.hooks, &self.runtime) {
            (Some(hooks), _) => init::Begin::Clone(hooks),
            (None, Some(runtime)) => init::Begin::Prestart(runtime),
            (None, None) => init::Begin::Exec(fds.library.as_ref()),
        }
    }
}
