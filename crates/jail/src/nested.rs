//! Cells inside gVisor: hotcell itself runs there, and that kernel lacks what a [`Jail`](crate::Jail) is made with.
//!
//! It has namespaces and mounts of the older kind. A process of ours makes those and the root by them, and its child becomes the init of
//! the cell, as in a container. Each cell has its own of everything, but no walls beside these namespaces and the system call filter, and
//! shares a kernel with the server: so it is a reduced level, which has to be asked for.

use std::convert::Infallible;
use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change,
    mount_remount, unmount,
};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, waitpid};

use crate::cell::{Cell, Sent};
use crate::codec::{self, fields};
use crate::container::{ContainerSpec, PROGRAM, host_folders, lay_root, live_nested};
use crate::devices::{self, DEVICES};
use crate::error::{Failed, step};
use crate::gvisor::receive;
use crate::init::{ids, report_failure};
use crate::policy::{Access, View};
use crate::sys::{self, Forked};
use crate::wire;

/// What the process is called that makes such a cell.
pub(crate) const NAME: &str = "hotcell-nested";

/// Whether this process runs inside gVisor. Its kernel has one build date, and newer ones say their name.
pub fn is_inside_gvisor() -> bool {
    let kernel = rustix::system::uname();
    let has = |text: &CStr, word: &str| text.to_string_lossy().contains(word);
    has(kernel.release(), "gvisor") || has(kernel.version(), "Sun Jan 10 15:06:54 PST 2016")
}

/// What is to be started.
#[derive(Debug, Clone, PartialEq)]
pub struct Nested {
    pub spec: ContainerSpec,
    pub view: View,
    /// This binary.
    pub own: PathBuf,
    /// An empty folder that nothing of it comes from, over which the root is mounted.
    pub folder: PathBuf,
}

fields!(Nested {
    spec,
    view,
    own,
    folder
});

impl Nested {
    /// Starts it. `stdio` are the program's ends of the standard streams. The child is to be waited for.
    pub fn start(&self, stdio: &[OwnedFd; 3]) -> io::Result<(Cell, Child)> {
        let (status, theirs) = wire::pair()?;
        let file = codec::to_memory_file(self)?;
        let child = Command::new("/proc/self/exe")
            .arg0(NAME)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let mut fds = vec![file.as_fd()];
        fds.extend(stdio.iter().map(AsFd::as_fd));
        wire::send(status.as_fd(), b"nested", &fds)?;
        let policy = &self.spec.policy;
        let cell = Cell {
            made_by: None,
            status: Some(status),
            lease: None,
            lent: None,
            pidfd: Some(pidfd),
            folders: None,
            listener: Sent::expected(policy.listen.is_some()),
            terminal: Sent::expected(policy.terminal.is_some()),
            uid: None,
            is_empty: false,
            is_guest: false,
            control: None,
            aside: Default::default(),
        };
        Ok((cell, child))
    }
}

/// The process that makes the cell, and lives as long as that does: who ends it ends the cell.
pub fn main() -> ! {
    let Ok(status) = rustix::io::fcntl_dupfd_cloexec(sys::take_stdin(), 10) else {
        sys::exit_now(1)
    };
    // Its number is free, and what is opened next would be taken for the program's standard input.
    match rustix::fs::open("/dev/null", OFlags::RDONLY, Mode::empty()) {
        Ok(null) => std::mem::forget(null),
        Err(_) => sys::exit_now(1),
    }
    match make(&status) {
        Ok(never) => match never {},
        Err(failed) => report_failure(status.as_fd(), failed),
    }
}

fn make(status: &OwnedFd) -> Result<Infallible, Failed> {
    let (nested, stdio, _) = step("reading the spec", || receive::<Nested>(status))?;
    step("entering namespaces", enter)?;
    step("mounting the root", || lay(&nested))?;
    match step("forking", sys::fork)? {
        Forked::Child => {
            step("watching the server", || {
                let signal = Some(Signal::KILL);
                Ok(rustix::process::set_parent_process_death_signal(signal)?)
            })?;
            step("mounting /proc", || {
                let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
                let target = nested.folder.join("proc");
                Ok(mount("proc", target, "proc", flags, None::<&CStr>)?)
            })?;
            step("switching to the root", || {
                // In a changed root there would be no further user namespace.
                rustix::process::chdir(&nested.folder)?;
                rustix::process::pivot_root(".", ".")?;
                unmount(".", UnmountFlags::DETACH)?;
                Ok(rustix::process::chdir("/")?)
            })?;
            live_nested(status, (nested.spec, stdio, None))
        }
        Forked::Parent { pid } => {
            // The end of its status socket is the child's alone from here on.
            step("closing files", || sys::close_all_but(&[]))?;
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = waitpid(Some(pid), WaitOptions::empty());
            }
            sys::exit_now(0)
        }
    }
}

/// Namespaces whose root is our user, and a loopback that is the cell's alone.
fn enter() -> io::Result<()> {
    let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
    sys::unshare(libc::CLONE_NEWUSER)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = rustix::fs::open("/proc", flags, Mode::empty())?;
    ids::map(proc.as_fd(), "self", [0, uid.as_raw(), gid.as_raw()], 1)?;
    let own = libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWNET;
    sys::unshare(own | libc::CLONE_NEWPID)?;
    rustix::system::sethostname(b"sandbox")?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    Ok(mount_change("/", private)?)
}

/// The root, read-only when all is in it.
fn lay(nested: &Nested) -> io::Result<()> {
    let base = MountFlags::NOSUID | MountFlags::NODEV;
    let root = nested.folder.as_path();
    mount("root", root, "tmpfs", base, Some(c"mode=0755,size=32m"))?;
    lay_root(root, &nested.view.links)?;
    devices::fill_folder(fs::File::open(root.join("dev"))?)?;
    let limits = &nested.spec.policy.limits;
    for (folder, size, mode) in [
        ("workspace", limits.workspace, "0755"),
        ("tmp", limits.tmp, "1777"),
        ("dev/shm", limits.shm, "1777"),
    ] {
        let options = sys::c_string(format!("size={size},mode={mode}"))?;
        mount("none", root.join(folder), "tmpfs", base, Some(&*options))?;
    }
    for device in DEVICES {
        let target = root.join("dev").join(device.name);
        fs::write(&target, "")?;
        mount_bind(Path::new("/dev").join(device.name), &target)?;
    }
    let program = root.join(inside(Path::new(PROGRAM)));
    bind(&nested.own, &program, Access::ReadOnly)?;
    for path in host_folders() {
        bind_folder(root, path, path, Access::ReadOnly)?;
    }
    for tree in &nested.view.trees {
        bind_folder(root, &tree.host, &tree.cell, Access::ReadOnly)?;
    }
    for mount in &nested.view.mounts {
        bind_folder(root, &mount.host, &mount.cell, mount.access)?;
    }
    Ok(mount_remount(
        root,
        MountFlags::BIND | MountFlags::RDONLY | base,
        "",
    )?)
}

fn bind_folder(root: &Path, host: &Path, cell: &Path, access: Access) -> io::Result<()> {
    let target = root.join(inside(cell));
    fs::create_dir_all(&target)?;
    bind(host, &target, access)
}

fn bind(host: &Path, target: &Path, access: Access) -> io::Result<()> {
    mount_bind(host, target)?;
    let read_only = match access {
        Access::ReadOnly => MountFlags::RDONLY,
        Access::Write => MountFlags::empty(),
    };
    let flags = MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV | read_only;
    Ok(mount_remount(target, flags, "")?)
}

fn inside(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}
