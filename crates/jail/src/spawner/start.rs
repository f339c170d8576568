//! How a spawner starts: it reads its spec, gives up the server's rights, enters namespaces of
//! its own and builds its root.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::RecvFlags;
use rustix::process::{DumpableBehavior, Gid, PidfdFlags, Signal, Uid, pidfd_open};

use super::idmap::IdMapper;
use super::network::Network;
use super::owner::OwnerMapper;
use super::root::{self, Root};
use super::setup_child::SetupChild;
use super::{MOVED, SWEEPING, Spawner, sweeper};
use crate::codec;
use crate::error::{Failed, MAPPING, step};
use crate::init::Filters;
use crate::prestart::Runtime;
use crate::slots::COUNT;
use crate::spec::{Missing, SpawnerSpec, Wall};
use crate::sys::{self, Cloned};
use crate::wire;

const USER: &str = "entering a user namespace";

impl Spawner {
    /// Builds everything; with the runtime to pre-start, if there is one.
    pub fn start(control: &OwnedFd) -> Result<(Self, Option<Runtime>), Failed> {
        step("watching the server", || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(rustix::process::chdir("/")?)
        })?;
        let Told {
            spec,
            library,
            lifeline,
            cgroup,
        } = step("reading the spawner's spec", || receive_spec(control))?;
        // The server is done with its own start, for which it kept us off its processor.
        sys::run_anywhere();
        step("starting the sweeper", || {
            match sweeper::start(&spec.sweep, lifeline)? {
                Some(sweeper) => wire::send(control.as_fd(), SWEEPING, &[sweeper.as_fd()]),
                None => Ok(()),
            }
        })?;
        if let Some(cgroup) = cgroup {
            step("entering a cgroup", || move_into(&cgroup, control))?;
        }
        let host_proc = step("opening /proc", root::open_host_proc)?;
        let mut missing = Vec::new();

        // SECURITY: as root, the trees are opened with root's rights and everything
        // else happens with those of an unused uid. Host uid 0 never enters a
        // namespace that code of strangers lives in.
        let mut trees = None;
        let mut owners = None;
        let mut has_range = spec.uid_base.is_some();
        let proc = host_proc.as_fd();
        let child = match spec.uid_base {
            Some(base) => {
                let child = step(USER, || as_owner(base, SetupChild::start))?;
                step(MAPPING, || child.map_ids(proc, base, base, COUNT + 1))?;
                // Root of a container may not mount; then it is done as an ordinary user.
                trees = match root::open_trees(&spec.view) {
                    Err(error) if error.raw_os_error() == Some(libc::EPERM) => None,
                    opened => Some(step("opening the visible folders", || opened)?),
                };
                // Where that is impossible the folders are shown as they are.
                if trees.is_some() {
                    owners = IdMapper::start(&spec.view.mounts, proc, base).unwrap_or_default();
                }
                step("dropping root", || drop_root(base))?;
                child
            }
            None if let Some(child) = subordinate_child(&spec, proc) => {
                has_range = true;
                child
            }
            None => {
                let child = step(USER, SetupChild::start)?;
                let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
                step("mapping ids", || {
                    child.map_ids(proc, uid.as_raw(), gid.as_raw(), 1)
                })?;
                child
            }
        };
        step(USER, || {
            let namespace = child.user_namespace(proc)?;
            sys::enter(namespace.as_fd(), libc::CLONE_NEWUSER)
        })?;
        step("entering a mount namespace", || {
            sys::unshare(libc::CLONE_NEWNS)
        })?;
        let proc = host_proc.try_clone();
        let mut workspaces = None;
        if has_range && spec.uid_base.is_none() {
            workspaces = proc.and_then(|proc| OwnerMapper::start(proc.as_fd())).ok();
        }
        let building = Root::begin(&spec, trees, host_proc, child)?;
        // While the child makes the network namespace.
        let filters = Filters::of(spec.has_cgroups, building.mounts());
        let (root, network) = building.finish()?;
        // We are away from the host's network ourselves; the first slot has the same.
        let mut networks = HashMap::new();
        match network {
            Ok(network) => drop(networks.insert(0, Network::of(network, &root.host_proc))),
            Err(error) => missing.push(Missing {
                wall: Wall::Network,
                errno: error.raw_os_error().unwrap_or(0),
            }),
        }
        // Who has no range has the user's own uid, and says so.
        if let Some(started) = &workspaces
            && !(started.is_able() && rustix::thread::set_thread_groups(&[]).is_ok())
        {
            workspaces = None;
        }
        let has_range = spec.uid_base.is_some() || workspaces.is_some();
        let spawner = Self {
            hooks: None,
            image: None,
            runtime: None,
            root,
            filters,
            has_range,
            networks,
            mounts: HashMap::new(),
            owners,
            workspaces,
            inside: Some(0),
            missing,
        };
        let runtime = spec.zygote.zip(library);
        let runtime = runtime.map(|(zygote, library)| Runtime { zygote, library });
        Ok((spawner, runtime))
    }
}

/// The first process of a user namespace with subordinate ids, if there are any and the host gives them.
fn subordinate_child(spec: &SpawnerSpec, host_proc: BorrowedFd<'_>) -> Option<SetupChild> {
    let ids = spec.subordinate.as_ref()?;
    let child = SetupChild::start().ok()?;
    match child.map_subordinate(host_proc, ids) {
        Ok(()) => Some(child),
        Err(_) => {
            child.end();
            None
        }
    }
}

struct Told {
    spec: SpawnerSpec,
    library: Option<OwnedFd>,
    /// Its end tells a sweeper that the server is gone.
    lifeline: Option<OwnedFd>,
    /// The cgroup to start cells from.
    cgroup: Option<OwnedFd>,
}

fn receive_spec(control: &OwnedFd) -> io::Result<Told> {
    let message = wire::receive(control.as_fd(), RecvFlags::empty())?;
    let mut fds = message.ok_or(io::ErrorKind::UnexpectedEof)?.fds.into_iter();
    let spec = fds.next().ok_or(io::ErrorKind::UnexpectedEof)?;
    let spec: SpawnerSpec = codec::from_memory_file(&spec)?;
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
        cgroup: fds.next(),
    })
}

/// Goes on as another process, cloned into `cgroup`, and tells the server who
/// that is. To move there would take the kernel 5 to 18 ms.
fn move_into(cgroup: &OwnedFd, control: &OwnedFd) -> io::Result<()> {
    match sys::clone_into(0, true, Some(cgroup.as_fd())) {
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
