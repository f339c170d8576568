//! The init of a cell: pid 1 in its namespaces, and the program's first moments.
//!
//! The checklist below is the sandbox. Each step is named, none is skipped, and
//! a step that fails ends the cell before the program exists. Three things may
//! be missing on some hosts ([`Wall`]): those are reported before the program
//! starts, and the server decides.

mod caps;
mod door;
pub(crate) mod ids;
mod landlock;
mod limits;
mod mounts;
mod reaper;
pub mod seccomp;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use rustix::net::RecvFlags;
use rustix::process::{DumpableBehavior, Signal};

use crate::error::{ENGINE_STEP, Failed, step};
use crate::policy::{Access, ENGINE, Policy};
use crate::spawner::{self, Root, Successor};
use crate::spec::{Go, Missing, Status, Wall};
use crate::sys::{self, Forked};
use crate::wire;

/// What the server gives for one cell.
pub struct CellParts {
    pub spec: OwnedFd,
    pub stdio: [OwnedFd; 3],
    pub status: OwnedFd,
    /// The control group to be born in, and else the entrance of each to join.
    pub birthplace: Option<OwnedFd>,
    pub join: Vec<OwnedFd>,
}

/// The two system call filters, built once by the spawner.
pub struct Filters {
    pub cell: Vec<libc::sock_filter>,
    pub init: Vec<libc::sock_filter>,
    /// Whether control groups bound the cells; else they are pinned to processors.
    pub grouped: bool,
}

impl Filters {
    pub fn new(grouped: bool) -> Self {
        Self {
            cell: seccomp::program(seccomp::Filter::Cell { grouped }),
            init: seccomp::program(seccomp::Filter::Init),
            grouped,
        }
    }
}

/// What the runtime of a zygote has to do in a clone.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// In the worker, when all walls stand; whether it will wait for a program.
    pub child: fn(bool) -> io::Result<()>,
    /// In the worker, at the word to go, which says what the runtime must do first.
    pub go: fn(&[u8]) -> io::Result<()>,
}

/// Where a cell's program begins.
#[derive(Clone, Copy)]
pub enum Begin<'a> {
    /// With its exec, at the word to go.
    Exec,
    /// In the image that the spawner is.
    Image(Hooks),
    /// In a runtime that the cell starts now, and that waits for the word by itself.
    Wait(&'a Successor),
}

impl Begin<'_> {
    fn hooks(self) -> Option<Hooks> {
        match self {
            Self::Image(hooks) => Some(hooks),
            Self::Exec | Self::Wait(_) => None,
        }
    }
}

/// The life of a cell's pid 1. `uid` is the cell's in the spawner's namespace.
///
/// Returns in the worker of a cell that goes on with a zygote's image, at the word to
/// go; otherwise never.
pub fn run(
    parts: &CellParts,
    root: &Root,
    slot: u32,
    filters: &Filters,
    begin: Begin<'_>,
    uid: u32,
    missing: Vec<Missing>,
) {
    let failed = match enter(parts, root, slot, filters, begin, uid, missing) {
        Ok(()) => return,
        Err(failed) => failed,
    };
    let message = Status::Failed(failed).to_bytes();
    let _ = wire::send(parts.status.as_fd(), &message, &[]);
    sys::exit_now(1);
}

fn enter(
    parts: &CellParts,
    root: &Root,
    slot: u32,
    filters: &Filters,
    begin: Begin<'_>,
    uid: u32,
    mut missing: Vec<Missing>,
) -> Result<(), Failed> {
    step("mapping ids", || {
        ids::map(root.host_proc.as_fd(), "self", [65534, uid, uid], 1)?;
        ids::become_nobody()
    })?;
    // The change of ids cleared it. The status socket is the second lifeline.
    step("watching the server", || {
        Ok(rustix::process::set_parent_process_death_signal(Some(
            Signal::KILL,
        ))?)
    })?;
    let policy = step("reading the spec", || {
        Policy::from_memory_file(parts.spec.try_clone()?)
    })?;
    mounts::build(root, slot, &policy.limits, &mut missing)?;
    // After the mounts, whose structures are ours and the same for every cell; before
    // anything whose size the program chooses.
    step("joining the control groups", || join_groups(parts))?;
    // Not by clone: the namespace must start at the group just joined, or
    // /proc/self/cgroup would show the way from the spawner's to it.
    note(
        &mut missing,
        Wall::CgroupNamespace,
        sys::unshare(libc::CLONE_NEWCGROUP),
    );
    limits::forbid_namespaces(&mut missing);
    if missing.iter().all(|m| m.wall != Wall::Proc) {
        step("closing kernel settings", mounts::seal_settings)?;
    }
    step("switching to the root", || {
        rustix::process::chroot("/cell")?;
        Ok(rustix::process::chdir("/workspace")?)
    })?;
    let has_proc = missing.iter().all(|m| m.wall != Wall::Proc);
    let folders = step("opening the workspace", || {
        open_folders(filters.grouped, has_proc)
    })?;
    let door = match policy.listen {
        Some(port) => Some(step("opening the way out", || door::open(port, &missing))?),
        None => None,
    };
    if missing.iter().all(|m| m.wall != Wall::Hostname) {
        step("setting the host name", || {
            Ok(rustix::system::sethostname(b"sandbox")?)
        })?;
    }
    step("setting limits", || limits::apply(&policy.limits))?;
    if !filters.grouped {
        step("pinning to processors", || limits::pin(policy.limits.cpus))?;
    }
    step("reporting", || {
        let message = Status::Ready { missing }.to_bytes();
        let fds: Vec<_> = door.iter().chain(&folders).map(AsFd::as_fd).collect();
        wire::send(parts.status.as_fd(), &message, &fds)
    })?;
    drop((folders, door));
    step("taking the standard streams", || {
        for (number, stream) in (0..).zip(&parts.stdio) {
            sys::dup_as(stream.as_fd(), number)?;
        }
        Ok(())
    })?;
    let engine = step(ENGINE_STEP, || engine(&policy, root))?;
    // The standard streams, the status socket, and what tells of the spawner's end.
    let mut keep = vec![0, 1, 2, parts.status.as_raw_fd(), root.lifeline.as_raw_fd()];
    keep.extend(engine.map(|file| file.as_raw_fd()));
    if let Begin::Wait(successor) = begin {
        keep.push(successor.library.as_raw_fd());
    }
    step("closing inherited files", || sys::close_all_but(&keep))?;
    // From here on nothing may need a capability.
    step("dropping capabilities", caps::drop_all)?;
    step("forbidding new privileges", || {
        Ok(rustix::thread::set_no_new_privs(true)?)
    })?;
    // SECURITY: pid 1 keeps the host path of our binary and the lifeline; the
    // program, its equal in uid, must not look into it.
    step("hiding init", || {
        Ok(rustix::process::set_dumpable_behavior(
            DumpableBehavior::NotDumpable,
        )?)
    })?;
    let writable = root
        .mounts
        .iter()
        .filter(|mount| mount.access == Access::Write);
    let writable: Vec<PathBuf> = writable.map(|mount| mount.path()).collect();
    let signals = step("watching the program", sys::child_signals)?;
    match step("forking", sys::fork)? {
        Forked::Child => start(&policy, engine, &writable, &parts.status, filters, begin),
        Forked::Parent { pid } => {
            step("letting go of the streams", || {
                sys::close_range(0, 2, false)?;
                match begin {
                    Begin::Wait(successor) => {
                        let library = successor.library.as_raw_fd();
                        sys::close_range(library, library, false)
                    }
                    Begin::Exec | Begin::Image(_) => Ok(()),
                }
            })?;
            step("filtering init's system calls", || {
                seccomp::install(&filters.init)
            })?;
            let lifelines = [parts.status.as_fd(), root.lifeline.as_fd()];
            match reaper::watch(pid, lifelines, signals.as_fd(), filters.grouped)? {}
        }
    }
}

/// The worker's part: the last walls, the word to go, and the program.
fn start(
    policy: &Policy,
    engine: Option<BorrowedFd<'_>>,
    writable: &[PathBuf],
    status: &OwnedFd,
    filters: &Filters,
    begin: Begin<'_>,
) -> Result<(), Failed> {
    let hooks = begin.hooks();
    step("starting a session", || {
        rustix::process::setsid()?;
        rustix::process::umask(Mode::from_raw_mode(0o022));
        match hooks {
            // The runtime has its own handlers already.
            Some(_) => sys::unblock_signals(),
            None => sys::reset_signals(),
        }
    })?;
    let argv = step("reading the arguments", || c_strings(&policy.argv))?;
    let env = step("reading the environment", || c_strings(&policy.env))?;
    let prepared = match begin {
        Begin::Wait(successor) => Some(step("preparing the runtime", || {
            sys::close_range(3, libc::c_int::MAX, true)?;
            Ok((successor, spawner::wait::prepare(successor, status)?))
        })?),
        Begin::Exec | Begin::Image(_) => None,
    };
    let landlock = step("restricting file access", || {
        landlock::restrict(engine, writable)
    })?;
    // SECURITY: seccomp goes last of all. The steps above need system calls that
    // the filter denies, and a filter laid earlier would have to allow them to the
    // program too.
    let seccomp = match seccomp::install(&filters.cell) {
        Ok(()) => true,
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => false,
        Err(error) => return step("filtering system calls", || Err(error)),
    };
    if let Some((successor, (task, _status))) = &prepared {
        return step("starting the runtime", || {
            spawner::wait::exec(successor, task, landlock, seccomp)
        });
    }
    if let Some(hooks) = hooks {
        step("waking the runtime", || {
            // Init's own is not the program's: an exec would have set it back too.
            rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
            (hooks.child)(policy.waits)
        })?;
    }
    let word = step("waiting for the word to go", || {
        let message = Status::Locked { landlock, seccomp }.to_bytes();
        wire::send(status.as_fd(), &message, &[])?;
        // Mostly it is there already: the server says beforehand what it asks for.
        let go = wire::receive(status.as_fd(), RecvFlags::empty())?;
        match go.as_ref().map(|go| Go::word(&go.bytes, landlock, seccomp)) {
            Some(Some(word)) => Ok(word.to_vec()),
            _ => sys::exit_now(0),
        }
    })?;
    if let Some(hooks) = hooks.filter(|_| !word.is_empty()) {
        step("preparing the runtime", || (hooks.go)(&word))?;
    }
    step("closing files", || {
        sys::close_range(3, libc::c_int::MAX, hooks.is_none())
    })?;
    if hooks.is_some() {
        return Ok(());
    }
    let path = argv.first().ok_or_else(|| Failed {
        step: "finding the program".to_owned(),
        errno: libc::EINVAL,
    })?;
    step("starting the program", || {
        Err(match engine {
            Some(file) => sys::exec_file(file, &argv, &env),
            None => sys::exec(path, &argv, &env),
        })
    })
}

/// Our own binary, for a cell whose program it is. Any other has no descriptor of it.
fn engine<'a>(policy: &Policy, root: &'a Root) -> io::Result<Option<BorrowedFd<'a>>> {
    if policy.argv.first().is_none_or(|first| first != ENGINE) {
        return Ok(None);
    }
    let found = root.engine.as_ref().map(AsFd::as_fd);
    let gone = || io::Error::from_raw_os_error(libc::ENOENT);
    found.map(Some).ok_or_else(gone)
}

fn join_groups(parts: &CellParts) -> io::Result<()> {
    for group in &parts.join {
        rustix::io::write(group, b"0")?;
    }
    Ok(())
}

/// What the server fills and collects from; and what it watches if no group counts for it.
fn open_folders(grouped: bool, has_proc: bool) -> io::Result<Vec<OwnedFd>> {
    let open = |path: &&str| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(*path, flags, Mode::empty())?)
    };
    rustix::fs::mkdir("/workspace/.home", Mode::from_raw_mode(0o755))?;
    let folders = match (grouped, has_proc) {
        (true, _) => &["/workspace"][..],
        (false, false) => &["/workspace", "/tmp", "/dev/shm"],
        (false, true) => &["/workspace", "/tmp", "/dev/shm", "/proc"],
    };
    folders.iter().map(open).collect()
}

pub fn c_strings(list: &[std::ffi::OsString]) -> io::Result<Vec<CString>> {
    list.iter()
        .map(|text| Ok(CString::new(text.as_bytes())?))
        .collect()
}

/// Records a wall that the host refused.
fn note(missing: &mut Vec<Missing>, wall: Wall, result: io::Result<()>) {
    if let Err(error) = result {
        let errno = error.raw_os_error().unwrap_or(0);
        missing.push(Missing { wall, errno });
    }
}
