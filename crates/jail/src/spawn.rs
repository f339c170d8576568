//! The server's side: a host, jails on it, and the cells they give.
//!
//! Nothing here waits for a cell. [`Jail::spawn`] sends one message; what becomes
//! of it arrives on the cell's status socket, which the caller may poll.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Gid, Uid};
use rustix::net::RecvFlags;
use rustix::process::{Signal, pidfd_send_signal};

use crate::cgroup::{self, Cgroups, Group, Mode, Usage};
use crate::error::{Failed, JailError};
use crate::keeper::{Door, Dying, Keeper, Launched};
use crate::policy::{Policy, View, Zygote};
use crate::slots::{Slots, UidBlock};
use crate::spec::{Exit, Go, Missing, SpawnRequest, SpawnerSpec, Status};
use crate::watcher::Watcher;
use crate::wire;

/// What this server has of its host: ids, control groups, slots.
pub struct Host {
    keeper: Keeper,
    groups: Arc<Groups>,
    uids: Option<UidBlock>,
}

/// The control groups of this server and the slots that use them.
pub struct Groups {
    pub cgroups: Cgroups,
    slots: Slots,
}

impl Groups {
    /// Removes all that no cell uses; whether nothing of ours is left then.
    pub fn remove(&self) -> bool {
        self.slots.remove_groups() && self.cgroups.mode() == Mode::V1
    }
}

impl Host {
    /// Looks at the host and prepares to make cells on it.
    pub fn open() -> Result<Self, JailError> {
        let (uids, groups) = look()?;
        Ok(Self {
            keeper: Keeper::start(None, None).map_err(JailError::Spawner)?,
            groups,
            uids,
        })
    }

    /// The same, with a jail whose cells see `/usr` alone, and whose spawner this thread
    /// starts beforehand: the thread must live as long as the host.
    pub fn open_early() -> Result<(Arc<Self>, Jail), JailError> {
        let launched = lock_early().take();
        let (uids, groups) = look()?;
        let view = View::default();
        let first = launched.map(|launched| {
            let spec = spec(&view, uids.as_ref(), &groups, None);
            launched.tell(spec, None, &groups, true)
        });
        let first = first.transpose()?;
        let door = first.as_ref().map(|(starting, _)| starting.door.clone());
        let has_groups = door.is_some().then(|| groups.clone());
        let host = Arc::new(Self {
            keeper: Keeper::start(first, has_groups).map_err(JailError::Spawner)?,
            groups,
            uids,
        });
        let jail = Jail::new(host.clone(), view);
        *jail.lock() = door;
        Ok((host, jail))
    }

    /// Waits until nothing runs in the cells that were dropped.
    pub fn settle(&self) {
        self.keeper.settle();
    }

    /// Which control groups bound the cells, and why not better ones.
    pub fn cgroups(&self) -> &Cgroups {
        &self.groups.cgroups
    }
}

/// A spawner that has been told nothing yet, for [`Host::open_early`].
static EARLY: Mutex<Option<Launched>> = Mutex::new(None);

fn lock_early() -> MutexGuard<'static, Option<Launched>> {
    EARLY.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn launch_early() {
    // Looking for groups may move this process, and a spawner has to follow it.
    if cgroup::stay_where_we_are() {
        *lock_early() = Launched::fork().ok();
    }
}

/// Makes cells that all see the same trees of the host.
pub struct Jail {
    host: Arc<Host>,
    view: View,
    /// The runtime whose image the cells have, and its library.
    zygote: Option<(Zygote, Arc<OwnedFd>)>,
    /// The way to the spawner, if one runs.
    spawner: Mutex<Option<Arc<Door>>>,
}

impl Jail {
    pub fn new(host: Arc<Host>, view: View) -> Self {
        Self {
            host,
            view,
            zygote: None,
            spawner: Mutex::new(None),
        }
    }

    /// Makes cells that go on with the image of a runtime. `library` is a memory file
    /// with this crate as a shared library, built with its feature `zygote`.
    pub fn of_zygote(host: Arc<Host>, view: View, zygote: Zygote, library: Arc<OwnedFd>) -> Self {
        Self {
            zygote: Some((zygote, library)),
            ..Self::new(host, view)
        }
    }

    /// Starts a spawner if none runs. It builds its root behind the caller; but a zygote
    /// is waited for until it has warmed up.
    pub fn start(&self) -> Result<(), JailError> {
        let spawner = self.spawner()?;
        if self.zygote.is_none() {
            return Ok(());
        }
        match spawner.failure() {
            Some(failed) => Err(failed.into()),
            None if spawner.is_built() => Ok(()),
            None => Err(JailError::SpawnerGone),
        }
    }

    /// Whether [`Jail::spawn`] will not have to start a spawner.
    pub fn is_started(&self) -> bool {
        let spawner = self.lock();
        spawner.as_ref().is_some_and(|spawner| {
            is_there(spawner) && (self.zygote.is_none() || spawner.is_built())
        })
    }

    /// Lets go of the spawner, if one runs. It ends with its last cell.
    pub fn stop(&self) {
        *self.lock() = None;
    }

    /// Asks for a cell. Blocks only if a spawner has to start first.
    ///
    /// `stdio` are the program's ends of the standard streams.
    pub fn spawn(&self, policy: &Policy, stdio: [OwnedFd; 3]) -> Result<Cell, JailError> {
        let spawner = self.spawner()?;
        let lease = Lease::take(&self.host.groups, &spawner)?;
        if let Some(group) = &lease.group {
            group.limit(&policy.limits).map_err(JailError::Cgroup)?;
        }
        let uid = self
            .host
            .uids
            .as_ref()
            .map(|uids| uids.base + 1 + lease.slot);
        if let Some(uid) = uid {
            own_pipes(&stdio, uid).map_err(JailError::Talk)?;
        }
        let spec = policy.to_memory_file().map_err(JailError::Talk)?;
        let (ours, theirs) = wire::pair().map_err(JailError::Talk)?;
        let request = SpawnRequest {
            slot: lease.slot,
            memory: policy.limits.memory,
            processors: policy.limits.processors(),
            birthplace: lease
                .group
                .as_ref()
                .is_some_and(|group| group.birthplace().is_some()),
        };
        let mut fds = vec![spec.as_fd()];
        fds.extend(stdio.iter().map(AsFd::as_fd));
        fds.push(theirs.as_fd());
        fds.extend(lease.group.iter().filter_map(Group::birthplace));
        fds.extend(lease.group.iter().flat_map(Group::join));
        if let Err(error) = wire::send(spawner.control.as_fd(), &request.to_bytes(), &fds) {
            // It is gone: the next call starts another.
            *self.lock() = None;
            return Err(match error.raw_os_error() {
                // It may have said why before.
                Some(libc::EPIPE | libc::ECONNRESET | libc::ENOTCONN) => {
                    spawner.failure().map_or(JailError::SpawnerGone, Into::into)
                }
                _ => JailError::Talk(error),
            });
        }
        Ok(Cell {
            host: self.host.clone(),
            spawner,
            status: Some(ours),
            lease: Some(lease),
            pidfd: None,
            folders: None,
            way_out: match policy.listen {
                Some(_) => WayOut::Expected,
                None => WayOut::None,
            },
            uid,
            is_empty: false,
        })
    }

    fn spawner(&self) -> Result<Arc<Door>, JailError> {
        let mut spawner = self.lock();
        if let Some(running) = spawner.as_ref().filter(|spawner| is_there(spawner)) {
            return Ok(running.clone());
        }
        let (zygote, library) = self.zygote.clone().unzip();
        let groups = self.host.groups.clone();
        let spec = spec(&self.view, self.host.uids.as_ref(), &groups, zygote);
        let started = self.host.keeper.start_spawner(spec, library, groups)?;
        *spawner = Some(started.clone());
        Ok(started)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Door>>> {
        self.spawner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a cell says about itself, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Its folders can be filled: [`Cell::workspace`].
    Ready {
        missing: Vec<Missing>,
    },
    /// Every wall stands; the program starts at [`Cell::go`], or has if that was said before.
    Locked {
        landlock: u8,
        seccomp: bool,
    },
    Failed(Failed),
    Exited(Exit),
    /// It is gone, and has said all it had to say.
    Gone,
}

/// A cell of the kernel's. Dropping it ends everything in it; its remains are
/// taken care of behind the caller.
pub struct Cell {
    host: Arc<Host>,
    spawner: Arc<Door>,
    status: Option<OwnedFd>,
    lease: Option<Lease>,
    pidfd: Option<OwnedFd>,
    folders: Option<Folders>,
    way_out: WayOut,
    uid: Option<u32>,
    /// Whether nothing but our init is left in it.
    is_empty: bool,
}

/// The listening socket of a cell that has one.
enum WayOut {
    None,
    Expected,
    Open(OwnedFd),
}

pub struct Folders {
    workspace: OwnedFd,
    /// Has something to look at only where no control group counts for us.
    watcher: Watcher,
}

impl Cell {
    /// The next thing the cell has said, or `None` if it has said nothing new.
    pub fn next_event(&mut self) -> io::Result<Option<Event>> {
        loop {
            let Some(status) = &self.status else {
                return Ok(Some(Event::Gone));
            };
            let message = match wire::receive(status.as_fd(), RecvFlags::DONTWAIT) {
                Ok(Some(message)) => message,
                // Its spawner may have failed before it came to our request.
                Ok(None) if self.pidfd.is_none() => {
                    let failure = self.spawner.failure();
                    return Ok(Some(failure.map_or(Event::Gone, Event::Failed)));
                }
                Ok(None) => return Ok(Some(Event::Gone)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            };
            let mut fds = message.fds.into_iter();
            return Ok(Some(match Status::from_bytes(&message.bytes)? {
                Status::Started => {
                    self.pidfd = fds.next();
                    continue;
                }
                Status::Ready { missing } => {
                    if matches!(self.way_out, WayOut::Expected) {
                        let door = fds.next().ok_or(io::ErrorKind::InvalidData)?;
                        self.way_out = WayOut::Open(door);
                    }
                    let workspace = fds.next().ok_or(io::ErrorKind::InvalidData)?;
                    self.folders = Some(Folders {
                        workspace,
                        watcher: Watcher::new(fds.collect()),
                    });
                    Event::Ready { missing }
                }
                Status::Locked { landlock, seccomp } => Event::Locked { landlock, seccomp },
                Status::Failed(failed) => Event::Failed(failed),
                Status::Exited(exit) => {
                    self.is_empty = exit.left == 0;
                    Event::Exited(exit)
                }
            }));
        }
    }

    /// Becomes readable when there is an event.
    pub fn status(&self) -> Option<BorrowedFd<'_>> {
        self.status.as_ref().map(AsFd::as_fd)
    }

    /// The cell's `/workspace`, once it is ready.
    pub fn workspace(&self) -> Option<BorrowedFd<'_>> {
        self.folders
            .as_ref()
            .map(|folders| folders.workspace.as_fd())
    }

    /// The socket at which the cell's program finds the server, once it is ready; non-blocking.
    pub fn take_door(&mut self) -> Option<OwnedFd> {
        match std::mem::replace(&mut self.way_out, WayOut::None) {
            WayOut::Open(door) => Some(door),
            _ => None,
        }
    }

    /// Lets go of the cell's folders, unless its use is read from them. Whoever holds
    /// them last pays for their end.
    pub fn close_folders(&mut self) {
        if self
            .lease
            .as_ref()
            .is_some_and(|lease| lease.group.is_some())
        {
            self.folders = None;
        }
    }

    /// The host uid that owns the cell's files, if it is not the server's own.
    pub fn uid(&self) -> Option<u32> {
        self.uid
    }

    /// Starts the program, once and if the walls stand that `go` asks for. A waiting
    /// runtime runs `word` before.
    pub fn go(&self, go: Go, word: &str) -> io::Result<()> {
        match &self.status {
            Some(status) => wire::send(status.as_fd(), &go.to_bytes(word), &[]),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Ends every process of the cell.
    pub fn kill(&self) {
        if let Some(pidfd) = &self.pidfd {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
        }
    }

    /// What the cell uses now and has used.
    pub fn usage(&self) -> Usage {
        let lease = self.lease.as_ref();
        match (lease.and_then(|lease| lease.group.as_ref()), &self.folders) {
            (Some(group), _) => group.read(),
            (None, Some(folders)) => {
                let pidfd = self.pidfd.as_ref().map(AsFd::as_fd);
                folders.watcher.read(folders.workspace.as_fd(), pidfd)
            }
            (None, None) => Usage::default(),
        }
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        if let (Some(status), Some(lease)) = (self.status.take(), self.lease.take()) {
            self.host.keeper.bury(Dying {
                status,
                pidfd: self.pidfd.take(),
                lease,
                is_empty: self.is_empty,
                _folders: self.folders.take(),
            });
        }
    }
}

/// A slot in use. Given back when dropped, which is after its cell is gone.
pub struct Lease {
    groups: Arc<Groups>,
    slot: u32,
    group: Option<Group>,
    given_up: bool,
}

impl Lease {
    fn take(groups: &Arc<Groups>, spawner: &Door) -> Result<Self, JailError> {
        let (slot, group) = groups.slots.take().ok_or(JailError::NoSlot)?;
        let mut lease = Self {
            groups: groups.clone(),
            slot,
            group,
            given_up: false,
        };
        if lease.group.is_none() && groups.cgroups.mode() != Mode::None {
            if !spawner.has_sweeper() {
                return Err(spawner.failure().map_or(JailError::SpawnerGone, Into::into));
            }
            let group = groups.cgroups.group(slot).map_err(JailError::Cgroup)?;
            lease.group = Some(group);
        }
        Ok(lease)
    }

    pub fn kill_group(&self) {
        if let Some(group) = &self.group {
            group.kill();
        }
    }

    /// Leaves the slot taken for good: its cell would not die.
    pub fn give_up(&mut self) {
        self.given_up = true;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.given_up {
            self.groups.slots.give_back(self.slot, self.group.take());
        }
    }
}

/// What the host lets us use.
fn look() -> Result<(Option<UidBlock>, Arc<Groups>), JailError> {
    let uids = if is_host_root().map_err(JailError::Root)? {
        Some(UidBlock::claim().map_err(JailError::Spawner)?)
    } else {
        None
    };
    let mut cgroups = Cgroups::find();
    if let Some(uids) = &uids {
        cgroups.admit(uids.base).map_err(JailError::Cgroup)?;
    }
    let groups = Groups {
        cgroups,
        slots: Slots::default(),
    };
    Ok((uids, Arc::new(groups)))
}

fn spec(
    view: &View,
    uids: Option<&UidBlock>,
    groups: &Groups,
    zygote: Option<Zygote>,
) -> SpawnerSpec {
    SpawnerSpec {
        view: view.clone(),
        uid_base: uids.map(|uids| uids.base),
        is_grouped: groups.cgroups.mode() != Mode::None,
        sweep: Vec::new(),
        zygote,
    }
}

/// Whether we are root where all ids are, and not in a user namespace of somebody
/// else's, such as a rootless container, where root is an ordinary user outside.
fn is_host_root() -> io::Result<bool> {
    if !rustix::process::geteuid().is_root() {
        return Ok(false);
    }
    let map = std::fs::read_to_string("/proc/self/uid_map")?;
    match map.split_whitespace().collect::<Vec<_>>()[..] {
        ["0", "0", "4294967295"] => Ok(true),
        // SECURITY: host root, but without the ids to be anybody else in cells.
        ["0", "0", ..] => Err(io::ErrorKind::PermissionDenied.into()),
        _ => Ok(false),
    }
}

/// Whether the spawner at the other end lives.
fn is_there(spawner: &Door) -> bool {
    let mut fds = [PollFd::new(&spawner.control, PollFlags::RDHUP)];
    matches!(poll(&mut fds, Some(&Timespec::default())), Ok(0))
}

/// Lets the cell open its own pipes by name, as in `echo > /dev/stderr`.
fn own_pipes(stdio: &[OwnedFd; 3], uid: u32) -> io::Result<()> {
    for stream in stdio {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(stream)?.st_mode);
        if kind == FileType::Fifo {
            rustix::fs::fchown(stream, Some(Uid::from_raw(uid)), Some(Gid::from_raw(uid)))?;
        }
    }
    Ok(())
}
