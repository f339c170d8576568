//! The spawner: the small process that makes cells.
//!
//! It runs in its own user and mount namespace, inside a root that holds nothing
//! but what its cells may see, and away from the host's network. It has one
//! thread, an empty environment and no secrets: a request's [`Policy`] passes
//! through it as an unread memory file.
//!
//! [`Policy`]: crate::policy::Policy

mod handoff;
pub mod masks;
mod root;
mod side;
mod sweeper;
pub mod wait;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::RecvFlags;
use rustix::process::{DumpableBehavior, Gid, PidfdFlags, Signal, Uid, pidfd_open};

use crate::error::{Failed, MAPPING, step};
use crate::init::{self, CellParts};
use crate::policy::Zygote;
use crate::slots::COUNT;
use crate::spec::{Missing, SpawnRequest, SpawnerSpec, Status, Wall};
use crate::sys::{self, Cloned};
use crate::wire;

#[cfg(feature = "zygote")]
pub use handoff::{Place, Task, receive as receive_handoff};
pub use root::Root;
use side::Side;

/// What the spawner says, with a pidfd, when a sweeper waits; and when all is built.
pub const SWEEPING: &[u8] = b"sweeping";
pub const READY: &[u8] = b"ready";
/// What it says, with its pidfd, once it has moved into a group of its own.
pub const MOVED: &[u8] = b"moved";

const USER: &str = "entering a user namespace";

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
pub fn give_up(control: &OwnedFd, failed: Failed) -> ! {
    let message = Status::Failed(failed).to_bytes();
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
    /// How a zygote's runtime is cloned; `None` for cells that start their program.
    pub hooks: Option<init::Hooks>,
    /// What each cell starts within its walls, to wait there.
    runtime: Option<Successor>,
    pub(crate) root: Root,
    filters: init::Filters,
    /// The uid that a slot's cells have in our user namespace is its number + 1;
    /// without a range it is our own, 0.
    has_range: bool,
    /// One network namespace for each slot, made when it is first used.
    networks: HashMap<u32, OwnedFd>,
    /// One mount namespace for each slot: a cell starts with a copy of all it holds, and
    /// must not pay for the overlays of others. The first slot's is the root's own.
    mounts: HashMap<u32, OwnedFd>,
    /// The slot whose namespaces we are in.
    inside: u32,
    /// What could not be had, for every cell to report.
    missing: Vec<Missing>,
}

impl Spawner {
    /// Answers requests until the server is gone. Returns in the worker of a zygote's
    /// cell, and nowhere else.
    pub fn work(mut self, control: &OwnedFd) {
        if wire::send(control.as_fd(), READY, &[]).is_err() {
            sys::exit_now(0);
        }
        loop {
            let message = wire::receive(control.as_fd(), RecvFlags::empty());
            match message.map(|message| message.map(|message| self.serve(message))) {
                // Its descriptors are closed already, and to free its memory would copy it.
                Ok(Some(Served::Worker)) => return std::mem::forget(self),
                Ok(Some(Served::Spawner)) => {}
                // No room for its descriptors: that request is lost, the others are not.
                Err(error) if error.raw_os_error() == Some(libc::EMFILE) => {}
                Ok(None) | Err(_) => sys::exit_now(0),
            }
        }
    }

    /// Builds everything; with the runtime to become, if there is one.
    fn start(control: &OwnedFd) -> Result<(Self, Option<Successor>), Failed> {
        step("watching the server", || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(rustix::process::chdir("/")?)
        })?;
        let Told {
            spec,
            library,
            lifeline,
            leaf,
        } = step("reading the spawner's spec", || receive_spec(control))?;
        // From here on there are others to be beside.
        sys::run_anywhere();
        step("starting the sweeper", || {
            match sweeper::start(&spec.sweep, lifeline)? {
                Some(sweeper) => wire::send(control.as_fd(), SWEEPING, &[sweeper.as_fd()]),
                None => Ok(()),
            }
        })?;
        if let Some(leaf) = leaf {
            step("entering a control group", || move_into(&leaf, control))?;
        }
        let host_proc = step("opening /proc", root::open_host_proc)?;
        let mut missing = Vec::new();

        // SECURITY: as root, the trees are opened with root's rights and everything
        // else happens with those of an unused uid. Host uid 0 never enters a
        // namespace that code of strangers lives in.
        let mut trees = None;
        let proc = host_proc.as_fd();
        let side = match spec.uid_base {
            Some(base) => {
                let side = step(USER, || as_owner(base, Side::start))?;
                step(MAPPING, || side.map_ids(proc, base, base, COUNT + 1))?;
                // Root of a container may not mount; then it is done as an ordinary user.
                trees = match root::open_trees(&spec.view) {
                    Err(error) if error.raw_os_error() == Some(libc::EPERM) => None,
                    opened => Some(step("opening the shown trees", || opened)?),
                };
                step("dropping root", || drop_root(base))?;
                side
            }
            None => {
                let side = step(USER, Side::start)?;
                let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
                step("mapping ids", || {
                    side.map_ids(proc, uid.as_raw(), gid.as_raw(), 1)
                })?;
                side
            }
        };
        step(USER, || {
            let namespace = side.user_namespace(proc)?;
            sys::enter(namespace.as_fd(), libc::CLONE_NEWUSER)
        })?;
        step("entering a mount namespace", || {
            sys::unshare(libc::CLONE_NEWNS)
        })?;
        let building = Root::begin(&spec.view, trees, host_proc, side)?;
        // While the child makes the network namespace.
        let filters = init::Filters::new(spec.is_grouped);
        let (root, network) = building.finish()?;
        // We are away from the host's network ourselves; the first slot has the same.
        let mut networks = HashMap::new();
        match network {
            Ok(network) => drop(networks.insert(0, network)),
            Err(error) => missing.push(Missing {
                wall: Wall::Network,
                errno: error.raw_os_error().unwrap_or(0),
            }),
        }
        let spawner = Self {
            hooks: None,
            runtime: None,
            root,
            filters,
            has_range: spec.uid_base.is_some(),
            networks,
            mounts: HashMap::new(),
            inside: 0,
            missing,
        };
        let runtime = spec.zygote.zip(library);
        Ok((
            spawner,
            runtime.map(|(zygote, library)| Successor { zygote, library }),
        ))
    }

    /// Makes one cell, or says on its status socket why not.
    fn serve(&mut self, message: wire::Message) -> Served {
        let mut fds = message.fds.into_iter().peekable();
        let (Some(spec), Some(stdin), Some(stdout), Some(stderr), Some(status)) =
            (fds.next(), fds.next(), fds.next(), fds.next(), fds.next())
        else {
            return Served::Spawner;
        };
        let Ok(request) = SpawnRequest::from_bytes(&message.bytes) else {
            return Served::Spawner;
        };
        let mut parts = CellParts {
            spec,
            stdio: [stdin, stdout, stderr],
            status,
            birthplace: fds.next_if(|_| request.birthplace),
            join: fds.collect(),
        };
        match self.spawn(&request, &mut parts) {
            Ok(Served::Worker) => {
                // Its descriptors are closed already.
                std::mem::forget(parts);
                Served::Worker
            }
            Ok(Served::Spawner) => Served::Spawner,
            Err(failed) => {
                let message = Status::Failed(failed).to_bytes();
                let _ = wire::send(parts.status.as_fd(), &message, &[]);
                Served::Spawner
            }
        }
    }

    fn spawn(&mut self, request: &SpawnRequest, parts: &mut CellParts) -> Result<Served, Failed> {
        let mut missing = self.missing.clone();
        if self.inside != request.slot {
            if missing.iter().all(|m| m.wall != Wall::Network) {
                step("entering the network namespace", || {
                    self.enter_network(request.slot)
                })?;
            }
            step("entering the mount namespace", || {
                self.enter_mounts(request.slot)
            })?;
            self.inside = request.slot;
        }
        if let Err(errno) = self.root.lay_overlays(request.slot) {
            missing.push(Missing {
                wall: Wall::Overlay,
                errno,
            });
        }
        step("writing the cell's facts", || {
            self.root
                .write_facts(request.slot, request.memory, request.processors)
        })?;
        let uid = if self.has_range { request.slot + 1 } else { 0 };
        let cloned = step("making namespaces", || {
            let group = parts.birthplace.take();
            match self.clone_cell(uid, group.as_ref(), &mut missing) {
                // Born in its group, it need not join it.
                Ok(cloned) if group.is_some() => {
                    parts.join.clear();
                    Ok(cloned)
                }
                // A kernel before 5.7, or a group that we may not use: it joins by itself.
                Err(_) if group.is_some() => self.clone_cell(uid, None, &mut missing),
                cloned => cloned,
            }
        })?;
        match cloned {
            Cloned::Child => {
                let (root, slot) = (&self.root, request.slot);
                init::run(parts, root, slot, &self.filters, self.begin(), uid, missing);
                Ok(Served::Worker)
            }
            Cloned::Parent { pidfd, .. } => {
                let message = Status::Started.to_bytes();
                // A server that is gone needs no answer: the cell ends by itself.
                let _ = wire::send(parts.status.as_fd(), &message, &[pidfd.as_fd()]);
                Ok(Served::Spawner)
            }
        }
    }

    fn begin(&self) -> init::Begin<'_> {
        match (self.hooks, &self.runtime) {
            (Some(hooks), _) => init::Begin::Image(hooks),
            (None, Some(runtime)) => init::Begin::Wait(runtime),
            (None, None) => init::Begin::Exec,
        }
    }

    /// Clones with the uid of the cell, so that the child may map it by itself.
    fn clone_cell(
        &self,
        uid: u32,
        group: Option<&OwnedFd>,
        missing: &mut Vec<Missing>,
    ) -> io::Result<Cloned> {
        let group = group.map(AsFd::as_fd);
        if self.has_range {
            become_effective(uid)?;
            // The groups are open to our own group id. Not to our uid: the child has to
            // open its id maps as the cell's, and cannot change ids before they are written.
            sys::set_file_group(0)?;
            rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        }
        const NEEDED: libc::c_int = libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::CLONE_NEWNS;
        let all = NEEDED | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
        let mut result = sys::clone_into(all, true, group);
        for (flag, lost) in [
            (libc::CLONE_NEWUTS, Wall::Ipc),
            (libc::CLONE_NEWIPC, Wall::Hostname),
        ] {
            let Err(error) = &result else { break };
            let errno = error.raw_os_error().unwrap_or(0);
            if !matches!(errno, libc::EINVAL | libc::ENOSPC | libc::EPERM) {
                break;
            }
            result = sys::clone_into(NEEDED | flag, true, group);
            if result.is_ok() {
                missing.push(Missing { wall: lost, errno });
            }
        }
        if self.has_range && !matches!(result, Ok(Cloned::Child)) {
            become_effective(0)?;
        }
        result
    }

    fn enter_network(&mut self, slot: u32) -> io::Result<()> {
        if let Some(network) = self.networks.get(&slot) {
            return sys::enter(network.as_fd(), libc::CLONE_NEWNET);
        }
        sys::unshare(libc::CLONE_NEWNET)?;
        self.networks.insert(slot, side::open_loopback()?);
        Ok(())
    }

    fn enter_mounts(&mut self, slot: u32) -> io::Result<()> {
        if self.mounts.is_empty() {
            self.mounts.insert(0, self.root.open_mounts()?);
        }
        if let Some(mounts) = self.mounts.get(&slot) {
            return sys::enter(mounts.as_fd(), libc::CLONE_NEWNS);
        }
        sys::enter(self.mounts[&0].as_fd(), libc::CLONE_NEWNS)?;
        sys::unshare(libc::CLONE_NEWNS)?;
        self.root.take_off_overlays(0);
        self.mounts.insert(slot, self.root.open_mounts()?);
        Ok(())
    }
}

/// A runtime to become, and the library that makes it make cells.
pub struct Successor {
    pub zygote: Zygote,
    pub library: OwnedFd,
}

struct Told {
    spec: SpawnerSpec,
    library: Option<OwnedFd>,
    /// Its end tells a sweeper that the server is gone.
    lifeline: Option<OwnedFd>,
    /// The group to start cells from.
    leaf: Option<OwnedFd>,
}

fn receive_spec(control: &OwnedFd) -> io::Result<Told> {
    let message = wire::receive(control.as_fd(), RecvFlags::empty())?;
    let mut fds = message.ok_or(io::ErrorKind::UnexpectedEof)?.fds.into_iter();
    let spec = fds.next().ok_or(io::ErrorKind::UnexpectedEof)?;
    let spec = SpawnerSpec::from_memory_file(spec)?;
    let library = spec.zygote.as_ref().and_then(|_| fds.next());
    let lifeline = if spec.sweep.is_empty() {
        None
    } else {
        fds.next()
    };
    Ok(Told {
        spec,
        library,
        lifeline,
        leaf: fds.next(),
    })
}

/// Goes on as another process, born in the group `leaf`, and tells the server who
/// that is. To move there would take the kernel 5 to 18 ms.
fn move_into(leaf: &OwnedFd, control: &OwnedFd) -> io::Result<()> {
    match sys::clone_into(0, true, Some(leaf.as_fd())) {
        Ok(Cloned::Parent { .. }) => sys::exit_now(0),
        // Cells then join by themselves.
        Err(_) => return Ok(()),
        Ok(Cloned::Child) => {}
    }
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let pidfd = pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    wire::send(control.as_fd(), MOVED, &[pidfd.as_fd()])
}

/// Does `work` with `owner` as our effective ids, and is root again.
fn as_owner<T>(owner: u32, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let (uid, gid) = (Uid::from_raw(owner), Gid::from_raw(owner));
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(gid, gid, Gid::ROOT)?;
    rustix::thread::set_thread_res_uid(uid, uid, Uid::ROOT)?;
    // Else the owner could not look at a child of ours.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let done = work();
    rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?;
    rustix::thread::set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT)?;
    done
}

/// Gives up root for good: from here on we are host uid `base`.
fn drop_root(base: u32) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(base), Gid::from_raw(base));
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    // The change of ids cleared these two.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    Ok(())
}

/// Changes our effective ids inside the range; `0` is ourselves again.
///
/// Real and saved ids stay, so capabilities come back with the return to 0.
fn become_effective(id: u32) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    if id == 0 {
        rustix::thread::set_thread_res_uid(None, uid, None)?;
        rustix::thread::set_thread_res_gid(None, gid, None)?;
    } else {
        rustix::thread::set_thread_res_gid(None, gid, None)?;
        rustix::thread::set_thread_res_uid(None, uid, None)?;
    }
    // The change cleared it, and a child must be dumpable to write its id maps.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    Ok(())
}
