//! The first process of a container: our init, where the engine has built the outer walls.
//!
//! It trusts the engine in nothing that it can look up: what is not as it must be ends it before there is a program.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::net::{
    AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
};

use super::{ContainerSpec, FOLDER, PROGRAM, SOCKET};
use crate::codec;
use crate::error::{ENGINE_STEP, Failed, step};
use crate::init::{Begin, Filters, Inside, Outer, caps, ids, live, report_failure, runs_engine};
use crate::policy::Policy;
use crate::prestart::Runtime;
use crate::spec::{Missing, Wall};
use crate::{gvisor, sys, wire};

/// The life of a container's first process.
pub fn main() -> ! {
    // Without a server there is nobody to tell anything.
    let Ok(status) = reach_server() else {
        sys::exit_now(1)
    };
    if let Err(failed) = enter(&status) {
        report_failure(status.as_fd(), failed);
    }
    sys::exit_now(1)
}

/// The life of the first process in a sandbox of gVisor.
pub fn main_of_guest() -> ! {
    let sockets = [gvisor::STATUS, gvisor::CONTROL].map(sys::take_descriptor);
    let [Ok(status), Ok(control)] = sockets else {
        sys::exit_now(1)
    };
    let lived = receive_in_guest(&status).and_then(|told| {
        step("becoming nobody", become_nobody_in_guest)?;
        enter_as(&status, Some(&control), told, Outer::Guest)
    });
    match lived {
        Ok(()) => sys::exit_now(1),
        Err(failed) => report_failure(status.as_fd(), failed),
    }
}

/// The life of the first process of a cell inside gVisor ([`crate::nested`]), at its root and with nothing of its own yet.
pub fn live_nested(status: &OwnedFd, told: Told) -> Result<Infallible, Failed> {
    step("becoming nobody", become_nobody_in_guest)?;
    enter_as(status, None, told, Outer::Nested)?;
    sys::exit_now(1)
}

/// Where the server is an ordinary user's, its one id is the guest's root. The program is to be nobody there too, as anywhere: in a user
/// namespace of the guest's kernel. To map root into one takes a capability, the only one that this process has.
fn become_nobody_in_guest() -> io::Result<()> {
    if !rustix::process::getuid().is_root() {
        return Ok(());
    }
    sys::unshare(libc::CLONE_NEWUSER)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = rustix::fs::open("/proc", flags, Mode::empty())?;
    ids::map(proc.as_fd(), "self", [65534, 0, 0], 1)?;
    ids::become_nobody()?;
    // SECURITY: the namespace brought capabilities along. None of them is needed from here on.
    caps::drop_all()
}

fn receive_in_guest(status: &OwnedFd) -> Result<Told, Failed> {
    step("reading the spec", || {
        rustix::io::fcntl_setfd(status, rustix::io::FdFlags::CLOEXEC)?;
        let folder = Path::new(gvisor::FOLDER);
        let spec: ContainerSpec = codec::from_bytes(&fs::read(folder.join(gvisor::SPEC))?)?;
        let copy = |stream: BorrowedFd<'_>| rustix::io::fcntl_dupfd_cloexec(stream, 10);
        let stdio = [
            copy(rustix::stdio::stdin())?,
            copy(rustix::stdio::stdout())?,
            copy(rustix::stdio::stderr())?,
        ];
        let library = match &spec.zygote {
            Some(_) => Some(fs::File::open(folder.join(gvisor::LIBRARY))?.into()),
            None => None,
        };
        Ok((spec, stdio, library))
    })
}

fn reach_server() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let path = Path::new(FOLDER).join(SOCKET);
    connect(&socket, &SocketAddrUnix::new(&path)?)?;
    Ok(socket)
}

/// What it is told, the program's ends of its streams, and the library of a pre-started runtime.
type Told = (ContainerSpec, [OwnedFd; 3], Option<OwnedFd>);

fn enter(status: &OwnedFd) -> Result<(), Failed> {
    let told = step("reading the spec", || receive(status))?;
    enter_as(status, None, told, Outer::Container)
}

fn enter_as(
    status: &OwnedFd,
    control: Option<&OwnedFd>,
    told: Told,
    outer: Outer,
) -> Result<(), Failed> {
    let (spec, stdio, library) = told;
    let ContainerSpec {
        policy,
        writable,
        zygote,
    } = spec;
    step("looking at the container", || check(outer))?;
    step("entering the workspace", || {
        Ok(rustix::process::chdir("/workspace")?)
    })?;
    let has_cgroups = is_bounded(&policy);
    let filters = Filters::new(has_cgroups, !writable.is_empty());
    let runtime = zygote
        .zip(library)
        .map(|(zygote, library)| Runtime { zygote, library });
    let engine = match runs_engine(&policy) {
        true => Some(step(ENGINE_STEP, || {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let own = match outer {
                Outer::Guest => gvisor::PROGRAM,
                Outer::Cell | Outer::Container | Outer::Nested => PROGRAM,
            };
            Ok(rustix::fs::open(own, flags, Mode::empty())?)
        })?),
        false => None,
    };
    let lived = live(Inside {
        policy: &policy,
        stdio: &stdio,
        status,
        control,
        lifeline: None,
        engine: engine.as_ref().map(AsFd::as_fd),
        writable,
        filters: &filters,
        begin: runtime.as_ref().map_or(Begin::Exec(None), Begin::Prestart),
        missing: missing(has_cgroups),
        outer,
        workspace: None,
    });
    match lived {
        Ok(()) => Ok(()),
        // Not by returning: what this function owns may be closed already.
        Err(failed) => report_failure(status.as_fd(), failed),
    }
}

fn receive(status: &OwnedFd) -> io::Result<Told> {
    let gone = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let message = wire::receive(status.as_fd(), RecvFlags::empty())?;
    let mut fds = message.ok_or_else(gone)?.fds.into_iter();
    let mut next = || fds.next().ok_or_else(gone);
    let spec = codec::from_memory_file(&next()?)?;
    let stdio = [next()?, next()?, next()?];
    Ok((spec, stdio, fds.next()))
}

/// Whether the walls stand that no program may run without.
///
/// SECURITY: an option that an engine has not understood, or that its configuration overrules, is seen here.
fn check(outer: Outer) -> io::Result<()> {
    let is = |is: bool, what: i32| match is {
        true => Ok(()),
        false => Err(io::Error::from_raw_os_error(what)),
    };
    // Everything ends with us, and nobody outside has a number here.
    is(rustix::process::getpid().is_init(), libc::ESRCH)?;
    is(!rustix::process::getuid().is_root(), libc::EPERM)?;
    is(!rustix::process::getgid().is_root(), libc::EPERM)?;
    let devices = fs::read_to_string("/proc/net/dev")?;
    let mut others = devices.lines().skip(2).filter_map(|it| it.split_once(':'));
    is(
        others.all(|(name, _)| name.trim() == "lo"),
        libc::ENETUNREACH,
    )?;
    if outer == Outer::Guest {
        // Its kernel does not tell. What is mounted there is read-only for the process that opens files for it, too.
        return Ok(());
    }
    is(is_read_only("/")?, libc::EROFS)?;
    is(is_read_only("/usr")?, libc::EROFS)
}

fn is_read_only(path: &str) -> io::Result<bool> {
    let found = rustix::fs::statvfs(path)?;
    Ok(found.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// Whether a cgroup of the container's own holds it to its memory: an engine without the right to make one says nothing.
fn is_bounded(policy: &Policy) -> bool {
    let files = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ];
    let mut limits = files
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok());
    limits.any(|limit| {
        let limit = limit.trim().parse::<u64>();
        limit.is_ok_and(|limit| limit <= policy.limits.memory)
    })
}

/// Where the kernel counts what it has killed in this container for want of memory.
pub fn open_kills() -> Option<OwnedFd> {
    let files = [
        "/sys/fs/cgroup/memory.events",
        "/sys/fs/cgroup/memory/memory.oom_control",
    ];
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let open = |file: &str| rustix::fs::open(file, flags, Mode::empty()).ok();
    files.into_iter().find_map(open)
}

/// What a container does not have of a cell of our own.
fn missing(has_cgroups: bool) -> Vec<Missing> {
    let mut walls = vec![Wall::Overlay, Wall::NestedNamespaces, Wall::Devices];
    let cgroup = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    if !cgroup.lines().all(|line| line.ends_with(":/")) {
        walls.push(Wall::CgroupNamespace);
    }
    if !has_cgroups {
        walls.push(Wall::Cgroups);
    }
    let missing = |wall| Missing { wall, errno: 0 };
    walls.into_iter().map(missing).collect()
}
