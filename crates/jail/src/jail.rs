//! A jail: makes cells that all see the same of the host.
//!
//! Nothing here waits for a cell. [`Jail::spawn`] sends one message; what becomes
//! of it arrives on the cell's status socket, which the caller may poll.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FileType, Gid, Mode, Uid};

use crate::cell::{Cell, Sent};
use crate::cgroup::Cgroup;
use crate::codec;
use crate::error::JailError;
use crate::host::Host;
use crate::lease::Lease;
use crate::policy::{Policy, View, Zygote};
use crate::spec::SpawnRequest;
use crate::supervisor::SpawnerHandle;
use crate::wire;

/// Makes cells that all see the same trees of the host.
pub struct Jail {
    host: Arc<Host>,
    view: View,
    /// The runtime whose image the cells have, and its library.
    zygote: Option<(Zygote, Arc<OwnedFd>)>,
    /// The spawner, if one runs.
    spawner: Mutex<Option<Arc<SpawnerHandle>>>,
}

impl Jail {
    pub fn new(host: Arc<Host>, view: View) -> Self {
        Self::with_spawner(host, view, None)
    }

    pub(crate) fn with_spawner(
        host: Arc<Host>,
        view: View,
        spawner: Option<Arc<SpawnerHandle>>,
    ) -> Self {
        Self {
            host,
            view,
            zygote: None,
            spawner: Mutex::new(spawner),
        }
    }

    /// Makes cells with a pre-started runtime. `library` is a memory file with the shared
    /// library that the runtime is started with ([`prestart`](crate::prestart)).
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
            spawner.is_alive() && (self.zygote.is_none() || spawner.is_built())
        })
    }

    /// Lets go of the spawner, if one runs. It ends with its last cell.
    pub fn stop(&self) {
        *self.lock() = None;
    }

    /// Asks for a cell. Blocks only if a spawner has to start first.
    ///
    /// `stdio` are the program's ends of the standard streams; `library` is for a policy that has one loaded.
    pub fn spawn(
        &self,
        policy: &Policy,
        stdio: [OwnedFd; 3],
        library: Option<&OwnedFd>,
    ) -> Result<Cell, JailError> {
        let spawner = self.spawner()?;
        let lease = Lease::take(&self.host.slots, &spawner)?;
        if let Some(cgroup) = &lease.cgroup {
            cgroup.limit(&policy.limits).map_err(JailError::Cgroup)?;
        }
        let uid = self
            .host
            .uids
            .as_ref()
            .map(|uids| uids.base + 1 + lease.slot);
        match uid {
            Some(uid) => own_pipes(&stdio, uid),
            None if self.host.subordinate.is_some() => open_pipes(&stdio),
            None => Ok(()),
        }
        .map_err(JailError::Talk)?;
        let spec = codec::to_memory_file(policy).map_err(JailError::Talk)?;
        let (ours, theirs) = wire::pair().map_err(JailError::Talk)?;
        let devices = uid.and_then(|_| spawner.make_devices(lease.slot));
        let directory = lease.cgroup.as_ref().and_then(Cgroup::directory);
        let request = SpawnRequest {
            slot: lease.slot,
            memory: policy.limits.memory,
            cpus: policy.limits.cpus,
            has_devices: devices.is_some(),
            has_cgroup_directory: directory.is_some(),
            has_library: library.is_some(),
        };
        let mut fds = vec![spec.as_fd()];
        fds.extend(stdio.iter().map(AsFd::as_fd));
        fds.push(theirs.as_fd());
        fds.extend(library.map(AsFd::as_fd));
        fds.extend(devices.iter().map(AsFd::as_fd));
        fds.extend(directory);
        fds.extend(lease.cgroup.iter().flat_map(Cgroup::join_files));
        if let Err(error) = wire::send(spawner.control.as_fd(), &codec::to_bytes(&request), &fds) {
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
            made_by: Some((self.host.clone(), spawner)),
            status: Some(ours),
            lease: Some(lease),
            lent: None,
            pidfd: None,
            folders: None,
            listener: Sent::expected(policy.listen.is_some()),
            terminal: Sent::expected(policy.terminal.is_some()),
            uid,
            is_empty: false,
            is_guest: false,
            control: None,
            aside: HashSet::new(),
        })
    }

    fn spawner(&self) -> Result<Arc<SpawnerHandle>, JailError> {
        let mut spawner = self.lock();
        if let Some(running) = spawner.as_ref().filter(|spawner| spawner.is_alive()) {
            return Ok(running.clone());
        }
        let order = self.host.order(&self.view, self.zygote.clone());
        let started = self.host.supervisor.start_spawner(order)?;
        *spawner = Some(started.clone());
        Ok(started)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<SpawnerHandle>>> {
        self.spawner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the cell open its own pipes by name, as in `echo > /dev/stderr`.
pub(crate) fn own_pipes(stdio: &[OwnedFd; 3], uid: u32) -> io::Result<()> {
    for stream in pipes(stdio)? {
        rustix::fs::fchown(stream, Some(Uid::from_raw(uid)), Some(Gid::from_raw(uid)))?;
    }
    Ok(())
}

/// The same by an ordinary user, who can give nothing away. Who may open a pipe by name is decided by who sees its process.
fn open_pipes(stdio: &[OwnedFd; 3]) -> io::Result<()> {
    for stream in pipes(stdio)? {
        rustix::fs::fchmod(stream, Mode::from_raw_mode(0o666))?;
    }
    Ok(())
}

fn pipes(stdio: &[OwnedFd; 3]) -> io::Result<Vec<&OwnedFd>> {
    let mut pipes = Vec::new();
    for stream in stdio {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(stream)?.st_mode);
        if kind == FileType::Fifo {
            pipes.push(stream);
        }
    }
    Ok(pipes)
}
