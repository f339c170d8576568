//! The server's host: what it lets us use, looked up once.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cgroup::{self, Cgroups, Mode};
use crate::error::JailError;
use crate::jail::Jail;
use crate::lease::CellSlots;
use crate::nested::is_inside_gvisor;
use crate::policy::{View, Zygote};
use crate::slots::{Slots, UidBlock};
use crate::spec::SpawnerSpec;
use crate::subordinate::{Claimed, Subordinate};
use crate::supervisor::{Launched, Order, Supervisor};

/// What this server has of its host: ids, cgroups, slots.
pub struct Host {
    pub(crate) supervisor: Supervisor,
    pub(crate) slots: Arc<CellSlots>,
    pub(crate) uids: Option<UidBlock>,
    pub(crate) subordinate: Option<Claimed>,
}

impl Host {
    /// Looks at the host and prepares to make cells on it. Who called [`launch_early`] must live as long as this.
    pub fn open() -> Result<Self, JailError> {
        let (uids, subordinate, slots) = look()?;
        Ok(Self {
            supervisor: Supervisor::start(None, lock_early().take(), None)
                .map_err(JailError::Spawner)?,
            slots,
            uids,
            subordinate,
        })
    }

    /// The same, with a jail whose cells see `/usr` alone, and whose spawner this thread
    /// starts beforehand: the thread must live as long as the host.
    pub fn open_early() -> Result<(Arc<Self>, Jail), JailError> {
        let launched = lock_early().take();
        let (uids, subordinate, slots) = look()?;
        let view = View::default();
        let first = launched.map(|launched| {
            let order = order(&view, uids.as_ref(), subordinate.as_ref(), &slots, None);
            launched.tell(&order, true)
        });
        let first = first.transpose()?;
        let handle = first.as_ref().map(|(starting, _)| starting.handle.clone());
        let in_use = handle.is_some().then(|| slots.clone());
        let host = Arc::new(Self {
            supervisor: Supervisor::start(first, None, in_use).map_err(JailError::Spawner)?,
            slots,
            uids,
            subordinate,
        });
        let jail = Jail::with_spawner(host.clone(), view, handle);
        Ok((host, jail))
    }

    /// What a spawner of this host is to be that shows `view`, with a runtime to pre-start
    /// and its library.
    pub(crate) fn order(&self, view: &View, runtime: Option<(Zygote, Arc<OwnedFd>)>) -> Order {
        let subordinate = self.subordinate.as_ref();
        order(view, self.uids.as_ref(), subordinate, &self.slots, runtime)
    }

    /// Waits until nothing runs in the cells that were dropped.
    pub fn settle(&self) {
        self.supervisor.settle();
    }

    /// Which cgroups bound the cells, and why not better ones.
    pub fn cgroups(&self) -> &Cgroups {
        &self.slots.cgroups
    }
}

/// A spawner that has been told nothing yet, for the first [`Host`] that is opened.
static EARLY: Mutex<Option<Launched>> = Mutex::new(None);

fn lock_early() -> MutexGuard<'static, Option<Launched>> {
    EARLY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a spawner that the first [`Host`] will find. For a process that has one thread and knows nothing yet.
pub fn launch_early() {
    // Looking for cgroups may move this process, and a spawner has to follow it.
    if cgroup::stay_where_we_are() && !is_inside_gvisor() {
        *lock_early() = Launched::fork().ok();
    }
}

/// What the host lets us use.
type Found = (Option<UidBlock>, Option<Claimed>, Arc<CellSlots>);

fn look() -> Result<Found, JailError> {
    let uids = if is_host_root().map_err(JailError::Root)? {
        Some(UidBlock::claim().map_err(JailError::Spawner)?)
    } else {
        None
    };
    let mut cgroups = Cgroups::find();
    if let Some(uids) = &uids {
        cgroups.admit(uids.base).map_err(JailError::Cgroup)?;
    }
    // In a cgroup of version 1 nobody but root may put a process of another uid.
    let subordinate = match uids {
        None if cgroups.mode() != Mode::V1 => Claimed::claim(),
        _ => None,
    };
    if subordinate.is_some() {
        // Else cells join by themselves, through files that we opened.
        let _ = cgroups.admit(rustix::process::getgid().as_raw());
    }
    let slots = CellSlots {
        cgroups,
        slots: Slots::default(),
    };
    Ok((uids, subordinate, Arc::new(slots)))
}

fn order(
    view: &View,
    uids: Option<&UidBlock>,
    subordinate: Option<&Claimed>,
    slots: &Arc<CellSlots>,
    runtime: Option<(Zygote, Arc<OwnedFd>)>,
) -> Order {
    let (zygote, library) = runtime.unzip();
    Order {
        spec: SpawnerSpec {
            view: view.clone(),
            uid_base: uids.map(|uids| uids.base),
            subordinate: subordinate
                .filter(|_| Subordinate::reach(view))
                .map(|claimed| claimed.ids.clone()),
            has_cgroups: slots.cgroups.mode() != Mode::None,
            sweep: Vec::new(),
            zygote,
        },
        library,
        slots: slots.clone(),
    }
}

/// Whether we are root where all ids are, and not in a user namespace of somebody
/// else's, such as a rootless container, where root is an ordinary user outside.
pub(crate) fn is_host_root() -> io::Result<bool> {
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
