//! The process on the host that prepares one sandbox of gVisor, and becomes `runsc`.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::net::RecvFlags;
use rustix::process::{PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

use super::{CONTROL, LIBRARY, ROOT, SHOWN, SPEC, STATUS, Sandbox, WORKSPACE, part};
use crate::codec::{self, Codec};
use crate::container::lay_root;
use crate::error::{Failed, step};
use crate::init::{c_strings, ids, listener, report_failure};
use crate::spawner::open_loopback;
use crate::spec::{Missing, Status, Wall};
use crate::sys::Forked;
use crate::{sys, wire};

/// What `runsc` is told besides: no cgroups (they are not ours to make), FIFOs of the workspace for sessions.
const OPTIONS: [&str; 4] = [
    "--ignore-cgroups",
    "--host-fifo=open",
    "--host-uds=none",
    "--overlay2=none",
];

pub fn main() -> ! {
    // Its number is the program's standard input later.
    let Ok(status) = rustix::io::fcntl_dupfd_cloexec(sys::take_stdin(), 10) else {
        sys::exit_now(1)
    };
    match launch(&status) {
        Ok(never) => match never {},
        Err(failed) => report_failure(status.as_fd(), failed),
    }
}

fn launch(status: &OwnedFd) -> Result<std::convert::Infallible, Failed> {
    let (sandbox, stdio, control, library) = step("reading the spec", || {
        let (sandbox, stdio, rest) = receive::<Sandbox>(status)?;
        let mut rest = rest.into_iter();
        let control = rest.next().ok_or(io::ErrorKind::UnexpectedEof)?;
        let control = rustix::io::fcntl_dupfd_cloexec(control, 10)?;
        Ok((sandbox, stdio, control, rest.next()))
    })?;
    step("watching the server", || watch(&control))?;
    step("entering namespaces", || enter(&sandbox))?;
    let listener = match sandbox.listen {
        Some(port) => Some(step("opening the loopback listener", || {
            open_loopback()?;
            listener::open(port, &[])
        })?),
        None => None,
    };
    step("making the bundle", || make(&sandbox, library.as_ref()))?;
    let workspace = step("opening the workspace", || {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let path = part(&sandbox.folder, WORKSPACE);
        Ok(rustix::fs::open(path, flags, Mode::empty())?)
    })?;
    step("reporting", || {
        let sockets = listener.is_some().then_some(Wall::Sockets);
        let missing = [Wall::NestedNamespaces, Wall::Cgroups].into_iter();
        let missing = missing.chain(sockets);
        let missing = missing.map(|wall| Missing { wall, errno: 0 }).collect();
        let message = codec::to_bytes(&Status::Ready { missing });
        let sent = listener.iter().chain([&workspace]);
        let sent: Vec<_> = sent.map(AsFd::as_fd).collect();
        wire::send(status.as_fd(), &message, &sent)
    })?;
    drop((listener, workspace));
    step("starting runsc", || {
        for (number, stream) in (0..).zip(stdio) {
            sys::dup_as(stream.as_fd(), number)?;
        }
        for socket in [status, &control] {
            sys::keep_on_exec(socket.as_fd())?;
        }
        let number = status.as_raw_fd();
        let folder = sandbox.folder.display();
        let mut words = vec![
            sandbox.runsc.display().to_string(),
            format!("--root={folder}/state"),
        ];
        words.extend(OPTIONS.map(str::to_owned));
        // SECURITY: the "host" is a namespace with nothing but a loopback, which this process is in by now.
        let network = match sandbox.listen {
            Some(_) => "host",
            None => "none",
        };
        words.push(format!("--network={network}"));
        words.extend([
            "run".to_owned(),
            format!("--bundle={folder}"),
            format!("--pass-fd={number}:{STATUS}"),
            format!("--pass-fd={}:{CONTROL}", control.as_raw_fd()),
            "sandbox".to_owned(),
        ]);
        let words: Vec<_> = words.into_iter().map(Into::into).collect();
        let argv = c_strings(&words)?;
        let env = c_strings(&["PATH=/usr/sbin:/usr/bin:/sbin:/bin".into()])?;
        Err(sys::exec(&argv[0], &argv, &env))
    })
}

/// Starts a process that ends `runsc`, which this process becomes, when the server is gone. Our init inside does so too, but not every gVisor
/// tells it.
fn watch(control: &OwnedFd) -> io::Result<()> {
    let runsc = pidfd_open(getpid(), PidfdFlags::empty())?;
    if let Forked::Parent { .. } = sys::fork()? {
        return Ok(());
    }
    let _ = sys::close_all_but(&[control.as_raw_fd(), runsc.as_raw_fd()]);
    let mut fds = [
        PollFd::new(control, PollFlags::empty()),
        PollFd::new(&runsc, PollFlags::IN),
    ];
    while let Err(Errno::INTR) = poll(&mut fds, None) {}
    let _ = pidfd_send_signal(&runsc, Signal::KILL);
    sys::exit_now(0);
}

/// What it is told, the program's ends of its streams, and what else was sent.
pub fn receive<T: Codec>(status: &OwnedFd) -> io::Result<(T, [OwnedFd; 3], Vec<OwnedFd>)> {
    let gone = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let message = wire::receive(status.as_fd(), RecvFlags::empty())?;
    let mut fds = message.ok_or_else(gone)?.fds.into_iter();
    let mut next = || fds.next().ok_or_else(gone);
    let told = codec::from_memory_file(&next()?)?;
    // Above the numbers that they are to have.
    let mut high = || Ok::<_, io::Error>(rustix::io::fcntl_dupfd_cloexec(next()?, 10)?);
    let stdio = [high()?, high()?, high()?];
    Ok((told, stdio, fds.collect()))
}

/// Mounts, and what else is to be its own.
fn enter(sandbox: &Sandbox) -> io::Result<()> {
    let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
    let network = sandbox.listen.map_or(0, |_| libc::CLONE_NEWNET);
    let user = match sandbox.uid {
        Some(_) => 0,
        None => libc::CLONE_NEWUSER,
    };
    sys::unshare(libc::CLONE_NEWNS | network | user)?;
    if sandbox.uid.is_none() {
        // What `runsc` may do as this root it may do to what is our user's, and to nothing else.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = rustix::fs::open("/proc", flags, Mode::empty())?;
        ids::map(proc.as_fd(), "self", [0, uid.as_raw(), gid.as_raw()], 1)?;
    }
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    Ok(mount_change("/", flags)?)
}

/// The bundle, all of it in memory.
fn make(sandbox: &Sandbox, library: Option<&OwnedFd>) -> io::Result<()> {
    let Sandbox {
        folder,
        config,
        spec,
        uid,
        links,
        ..
    } = sandbox;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    // The library and the state are a few MiB.
    mount("none", folder, "tmpfs", flags, Some(c"size=64m,mode=0755"))?;
    let root = part(folder, ROOT);
    fs::create_dir(&root)?;
    lay_root(&root, links)?;
    fs::write(root.join("run/hotcell-guest"), "")?;
    let shown = part(folder, SHOWN);
    fs::create_dir(&shown)?;
    fs::write(shown.join(SPEC), codec::to_bytes(spec))?;
    if let Some(library) = library {
        let path = shown.join(LIBRARY);
        fs::copy(format!("/proc/self/fd/{}", library.as_raw_fd()), &path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    fs::write(folder.join("config.json"), config)?;
    make_workspace(&part(folder, WORKSPACE), spec, *uid)
}

fn make_workspace(
    path: &Path,
    spec: &crate::container::ContainerSpec,
    uid: Option<u32>,
) -> io::Result<()> {
    fs::create_dir(path)?;
    let limits = &spec.policy.limits;
    let options = format!(
        "size={},nr_inodes={},mode=0755",
        limits.workspace, limits.workspace_inodes
    );
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let options = sys::c_string(options)?;
    mount("none", path, "tmpfs", flags, Some(&*options))?;
    let home = path.join(".home");
    fs::create_dir(&home)?;
    for folder in [path, &*home] {
        let owner = (uid.map(Uid::from_raw), uid.map(Gid::from_raw));
        rustix::fs::chown(folder, owner.0, owner.1)?;
    }
    Ok(())
}
