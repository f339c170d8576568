//! The init of a cell: pid 1 in its namespaces.
//!
//! The checklist below is the sandbox; `worker` has the rest of it. Each step is named, none is
//! skipped, and a step that fails ends the cell before the program exists. Some hosts cannot
//! build every wall: those that [`Wall`] lists, and the two of [`WorkerWalls`], may be missing.
//! That is reported before the program starts, and the server decides.
//!
//! [`WorkerWalls`]: crate::spec::WorkerWalls

pub(crate) mod caps;
pub(crate) mod ids;
mod image;
mod landlock;
mod limits;
pub(crate) mod listener;
mod mounts;
mod reaper;
mod relay;
pub mod seccomp;
mod terminal;
mod worker;

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::process::{DumpableBehavior, Signal};

pub(crate) use self::image::Image;
pub(crate) use self::limits::bound_cpu;
pub use self::limits::{are_in_reach, processors};
use self::reaper::Reaper;
use self::relay::Relay;
use self::worker::Worker;
use crate::codec;
use crate::error::{ENGINE_STEP, Failed, step};
use crate::policy::{Access, ENGINE, Policy};
use crate::prestart::Runtime;
use crate::spawner::{Granted, OwnerMapper, Root};
use crate::spec::{Missing, Status, Wall};
use crate::sys::{self, Forked};
use crate::wire;

/// The file descriptors that the server gives for one cell.
pub struct CellFds {
    /// A memory file with the cell's [`Policy`].
    pub policy: OwnedFd,
    pub stdio: [OwnedFd; 3],
    pub status: OwnedFd,
    /// The library of a runtime that is started with it at the start message.
    pub library: Option<OwnedFd>,
    /// The devices of its slot, if it has none yet.
    pub devices: Option<OwnedFd>,
    /// The cgroup to clone the cell into.
    pub cgroup_directory: Option<OwnedFd>,
    /// The files to join its cgroups by, if it was not.
    pub cgroup_files: Vec<OwnedFd>,
}

/// The two system call filters, built once by the spawner.
pub struct Filters {
    pub cell: Vec<libc::sock_filter>,
    pub init: Vec<libc::sock_filter>,
    /// Whether cgroups bound the cells; else they are pinned to processors.
    pub has_cgroups: bool,
    /// Whether cells may write to folders of the host.
    pub writes_host: bool,
}

impl Filters {
    /// For cells that get `mounts`.
    pub fn of(has_cgroups: bool, mounts: &[Granted]) -> Self {
        let writes_host = mounts.iter().any(|mount| mount.access == Access::Write);
        Self::new(has_cgroups, writes_host)
    }

    pub fn new(has_cgroups: bool, writes_host: bool) -> Self {
        Self {
            cell: seccomp::program(seccomp::Filter::Cell {
                grouped: has_cgroups,
                writes_host,
            }),
            init: seccomp::program(seccomp::Filter::Init),
            has_cgroups,
            writes_host,
        }
    }
}

/// What the runtime of a zygote does in a clone of it, in the worker of a cell.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// When all walls stand; whether the cell is made before its program is known.
    pub after_clone: fn(prestarted: bool) -> io::Result<()>,
    /// At the start message, with its prelude if there is one.
    pub prelude: fn(&str) -> io::Result<()>,
}

/// How a cell's program begins.
#[derive(Clone, Copy)]
pub enum Begin<'a> {
    /// With an exec, at the start message; of a runtime that loads this library, if the policy says so.
    Exec(Option<&'a OwnedFd>),
    /// In the image of the zygote that the cell is a clone of.
    Clone(Hooks),
    /// In a runtime that the cell starts now, and whose library waits for the start message.
    Prestart(&'a Runtime),
}

impl Begin<'_> {
    fn hooks(self) -> Option<Hooks> {
        match self {
            Self::Clone(hooks) => Some(hooks),
            Self::Exec(_) | Self::Prestart(_) => None,
        }
    }

    /// The library that the worker needs, and nobody else.
    fn library(self) -> Option<RawFd> {
        match self {
            Self::Exec(library) => library.map(AsRawFd::as_raw_fd),
            Self::Prestart(runtime) => Some(runtime.library.as_raw_fd()),
            Self::Clone(_) => None,
        }
    }
}

/// A cell that was just cloned: all that its pid 1 needs to know.
pub struct NewCell<'a> {
    pub fds: &'a CellFds,
    pub root: &'a Root,
    pub slot: u32,
    /// The cell's uid in the spawner's user namespace.
    pub uid: u32,
    /// Who gives its workspace to the server's user, if it has subordinate ids.
    pub workspaces: Option<&'a OwnerMapper>,
    pub filters: &'a Filters,
    pub begin: Begin<'a>,
    /// What the zygote runs that the cell is a clone of.
    pub image: Option<&'a Image>,
    /// The walls that the spawner could not build.
    pub missing: Vec<Missing>,
}

/// The life of a cell's pid 1.
///
/// Returns in the worker of a cell that goes on with a zygote's image, at the start message;
/// otherwise never.
pub fn run(cell: NewCell<'_>) {
    let status = cell.fds.status.as_fd();
    if let Err(failed) = enter(cell) {
        report_failure(status, failed);
    }
}

/// Says which step failed, and ends.
pub(crate) fn report_failure(status: BorrowedFd<'_>, failed: Failed) -> ! {
    let message = codec::to_bytes(&Status::Failed(failed));
    let _ = wire::send(status, &message, &[]);
    sys::exit_now(1)
}

fn enter(cell: NewCell<'_>) -> Result<(), Failed> {
    let NewCell {
        fds,
        root,
        slot,
        uid,
        workspaces,
        filters,
        begin,
        image,
        mut missing,
    } = cell;
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
    let policy: Policy = step("reading the spec", || codec::from_memory_file(&fds.policy))?;
    mounts::build(root, slot, &policy.limits, &mut missing)?;
    let workspace = match workspaces {
        Some(workspaces) => Some(step("giving the workspace away", || {
            workspaces.map(Path::new("/cell/workspace"))
        })?),
        None => None,
    };
    if let Some(image) = image {
        note(
            &mut missing,
            Wall::Overlay,
            image.move_to(Path::new("/cell")),
        );
    }
    // After the mounts, whose structures are ours and the same for every cell; before
    // anything whose size the program chooses.
    step("joining the cgroups", || join_cgroups(&fds.cgroup_files))?;
    // Not by clone: the namespace must start at the cgroup just joined, or
    // /proc/self/cgroup would show the path from the spawner's to it.
    note(
        &mut missing,
        Wall::CgroupNamespace,
        sys::unshare(libc::CLONE_NEWCGROUP),
    );
    limits::forbid_namespaces(&mut missing);
    if missing.iter().all(|m| m.wall != Wall::Proc) {
        step("closing kernel settings", || {
            mounts::seal_settings(root, slot)
        })?;
    }
    step("switching to the root", || {
        rustix::process::chroot("/cell")?;
        Ok(rustix::process::chdir("/workspace")?)
    })?;
    let engine = step(ENGINE_STEP, || engine(&policy, root))?;
    let writable = root.mounts.iter();
    let writable = writable.filter(|mount| mount.access == Access::Write);
    live(Inside {
        policy: &policy,
        stdio: &fds.stdio,
        status: &fds.status,
        control: None,
        lifeline: Some(root.lifeline.as_fd()),
        engine,
        writable: writable.map(|mount| mount.path()).collect(),
        filters,
        begin,
        missing,
        outer: Outer::Cell,
        workspace,
    })
}

/// Who has built the walls that stand already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outer {
    /// We have, above.
    Cell,
    /// The engine of a container.
    Container,
    /// Another kernel, around us alone.
    Guest,
    /// We have, by what the kernel of gVisor has, which the server shares.
    Nested,
}

/// A pid 1 at its root, in namespaces of its own.
pub(crate) struct Inside<'a> {
    pub policy: &'a Policy,
    pub stdio: &'a [OwnedFd; 3],
    pub status: &'a OwnedFd,
    /// Where init is asked to copy what was printed, if it copies.
    pub control: Option<&'a OwnedFd>,
    /// What ends when the spawner does.
    pub lifeline: Option<BorrowedFd<'a>>,
    /// Our own binary, if that is the program.
    pub engine: Option<BorrowedFd<'a>>,
    /// The granted folders that the program may write to.
    pub writable: Vec<PathBuf>,
    pub filters: &'a Filters,
    pub begin: Begin<'a>,
    pub missing: Vec<Missing>,
    pub outer: Outer,
    /// The workspace for the server, if that is not simply the folder.
    pub workspace: Option<OwnedFd>,
}

/// The rest of the checklist, the same wherever the outer walls come from.
pub(crate) fn live(inside: Inside<'_>) -> Result<(), Failed> {
    let Inside {
        policy,
        stdio,
        status,
        control,
        lifeline,
        engine,
        writable,
        filters,
        begin,
        missing,
        outer,
        workspace,
    } = inside;
    let has_proc = missing.iter().all(|m| m.wall != Wall::Proc);
    let folders = step("opening the workspace", || {
        match outer {
            Outer::Cell => open_folders(workspace, filters.has_cgroups, has_proc),
            // It has been given to the server already, which may have filled it.
            Outer::Guest => Ok(Vec::new()),
            // Its cgroup is the engine's: we count for ourselves, but for what the kernel has killed.
            Outer::Container | Outer::Nested => {
                let mut folders = open_folders(None, false, true)?;
                folders.extend(crate::container::open_kills());
                Ok(folders)
            }
        }
    })?;
    let listener = match policy.listen {
        Some(port) => Some(step("opening the loopback listener", || {
            listener::open(port, &missing)
        })?),
        None => None,
    };
    let terminal = match &policy.terminal {
        Some(terminal) => Some(step("opening the terminal", || terminal::open(terminal))?),
        None => None,
    };
    if outer == Outer::Cell && missing.iter().all(|m| m.wall != Wall::Hostname) {
        step("setting the host name", || {
            Ok(rustix::system::sethostname(b"sandbox")?)
        })?;
    }
    // Before the limits: the kernel counts descriptors on their way by user, and compares with the limit of whoever sends. Another cell of the
    // same user may have as many on their way as it can open, and no more.
    step("reporting", || {
        if outer == Outer::Guest {
            return Ok(());
        }
        let message = codec::to_bytes(&Status::Ready { missing });
        let sent = listener.iter().chain(terminal.as_ref().map(|it| &it.ours));
        let sent: Vec<_> = sent.chain(&folders).map(AsFd::as_fd).collect();
        wire::send(status.as_fd(), &message, &sent)
    })?;
    drop((folders, listener));
    step("setting limits", || match outer {
        Outer::Cell | Outer::Container => limits::apply(&policy.limits),
        // Its kernel knows some of them.
        Outer::Guest | Outer::Nested => {
            limits::apply_known(&policy.limits);
            Ok(())
        }
    })?;
    if !filters.has_cgroups {
        step("pinning to processors", || {
            limits::pin(&processors(policy.limits.cpus, filters.has_cgroups)?)
        })?;
    }
    let relays = match outer {
        Outer::Cell | Outer::Container | Outer::Nested => Vec::new(),
        Outer::Guest => step("making the program's pipes", || {
            reaper::rehearse()?;
            stdio[1..].iter().map(Relay::make).collect()
        })?,
    };
    let (relays, ends): (Vec<Relay>, Vec<OwnedFd>) = relays.into_iter().unzip();
    step("taking the standard streams", || {
        for (number, stream) in (0..).zip(stdio) {
            let of_relay = usize::try_from(number - 1).ok().and_then(|it| ends.get(it));
            let stream = of_relay.unwrap_or(stream);
            let at_terminal = terminal.as_ref().zip(policy.terminal.as_ref());
            let at_terminal = at_terminal.filter(|(_, it)| number < 2 || it.has_stderr);
            let stream = at_terminal.map_or(stream, |(pair, _)| &pair.theirs);
            sys::dup_as(stream.as_fd(), number)?;
        }
        terminal.as_ref().map_or(Ok(()), terminal::lead)
    })?;
    drop((terminal, ends));
    // The standard streams, the status socket, and what tells of the spawner's end.
    let mut keep = vec![0, 1, 2, status.as_raw_fd()];
    keep.extend(control.map(|socket| socket.as_raw_fd()));
    keep.extend(lifeline.map(|pipe| pipe.as_raw_fd()));
    keep.extend(engine.map(|file| file.as_raw_fd()));
    keep.extend(relays.iter().flat_map(Relay::numbers));
    keep.extend(begin.library());
    step("closing inherited files", || sys::close_all_but(&keep))?;
    // From here on nothing may need a capability.
    step("dropping capabilities", || match outer {
        Outer::Cell => caps::drop_all(),
        Outer::Container | Outer::Guest | Outer::Nested => caps::are_dropped(),
    })?;
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
    let signals = step("watching the program", sys::child_signals)?;
    match step("forking", sys::fork)? {
        Forked::Child => worker::start(Worker {
            policy,
            engine,
            writable: &writable,
            status,
            filters,
            begin,
        }),
        Forked::Parent { pid } => {
            step("closing the streams", || {
                sys::close_range(0, 2, false)?;
                match begin.library() {
                    Some(library) => sys::close_range(library, library, false),
                    None => Ok(()),
                }
            })?;
            step("filtering init's system calls", || {
                seccomp::install(&filters.init)
            })?;
            let mut reaper = Reaper {
                program: pid,
                is_relayed: !relays.is_empty(),
                relays,
                status: status.as_fd(),
                control: control.map(AsFd::as_fd),
                spawner: lifeline,
                signals: signals.as_fd(),
                has_cgroups: filters.has_cgroups,
            };
            match step("watching the program", || reaper.run())? {}
        }
    }
}

/// Our own binary, for a cell whose program it is. Any other has no file descriptor of it.
fn engine<'a>(policy: &Policy, root: &'a Root) -> io::Result<Option<BorrowedFd<'a>>> {
    if !runs_engine(policy) {
        return Ok(None);
    }
    let found = root.engine.as_ref().map(AsFd::as_fd);
    let gone = || io::Error::from_raw_os_error(libc::ENOENT);
    found.map(Some).ok_or_else(gone)
}

pub(crate) fn runs_engine(policy: &Policy) -> bool {
    policy.argv.first().is_some_and(|first| first == ENGINE)
}

fn join_cgroups(files: &[OwnedFd]) -> io::Result<()> {
    for file in files {
        rustix::io::write(file, b"0")?;
    }
    Ok(())
}

/// What the server fills and collects from; and what it reads the cell's usage from, if no
/// cgroup counts for it.
fn open_folders(
    workspace: Option<OwnedFd>,
    has_cgroups: bool,
    has_proc: bool,
) -> io::Result<Vec<OwnedFd>> {
    let open = |path: &&str| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(*path, flags, Mode::empty())?)
    };
    rustix::fs::mkdir("/workspace/.home", Mode::from_raw_mode(0o755))?;
    let others = match (has_cgroups, has_proc) {
        (true, _) => &[][..],
        (false, false) => &["/tmp", "/dev/shm"],
        (false, true) => &["/tmp", "/dev/shm", "/proc"],
    };
    let workspace = workspace.map_or_else(|| open(&"/workspace"), Ok);
    std::iter::once(workspace)
        .chain(others.iter().map(open))
        .collect()
}

pub fn c_strings(list: &[OsString]) -> io::Result<Vec<CString>> {
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
