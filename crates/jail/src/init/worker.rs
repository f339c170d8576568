//! The worker: pid 2 of a cell, which becomes its program. It lays the last walls on itself,
//! reports them, and waits for the start message.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::Mode;
use rustix::net::RecvFlags;
use rustix::process::DumpableBehavior;

use super::{Begin, Filters, bound_cpu, c_strings, landlock, seccomp, terminal};
use crate::codec;
use crate::error::{Failed, step};
use crate::policy::Policy;
use crate::prestart::in_cell::{Prepared, accepted};
use crate::prestart::loading::Loading;
use crate::spec::{Status, WorkerWalls};
use crate::{sys, wire};

/// What a worker needs to know.
pub struct Worker<'a> {
    pub policy: &'a Policy,
    /// Our own binary, if that is the program.
    pub engine: Option<BorrowedFd<'a>>,
    /// The granted folders that it may write to.
    pub writable: &'a [PathBuf],
    pub status: &'a OwnedFd,
    pub filters: &'a Filters,
    pub begin: Begin<'a>,
}

/// Returns in a clone of a zygote, at the start message, and with an error.
pub fn start(worker: Worker<'_>) -> Result<(), Failed> {
    let Worker {
        policy,
        engine,
        writable,
        status,
        filters,
        begin,
    } = worker;
    let hooks = begin.hooks();
    step("starting a session", || {
        match policy.terminal {
            Some(_) => terminal::enter_foreground()?,
            None => drop(rustix::process::setsid()?),
        }
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
        Begin::Prestart(runtime) => Some(step("preparing the runtime", || {
            sys::close_range(3, libc::c_int::MAX, true)?;
            Prepared::new(runtime, status)
        })?),
        Begin::Exec(_) | Begin::Clone(_) => None,
    };
    // One that cannot have the library is started without.
    let loading = match begin {
        Begin::Exec(Some(library)) => Loading::prepare(policy, library),
        _ => None,
    };
    let landlock = step("restricting file access", || {
        landlock::restrict(engine, writable)
    })?;
    // SECURITY: seccomp goes last of all. The steps above need system calls that
    // the filter denies, and a filter laid earlier would have to allow them to the
    // program too.
    let seccomp = match seccomp::install(&filters.cell) {
        Ok(()) => true,
        // SECURITY: what it writes to a folder of the host outlives every other wall.
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) && !filters.writes_host => false,
        Err(error) => return step("filtering system calls", || Err(error)),
    };
    let walls = WorkerWalls { landlock, seccomp };
    if let Some(prepared) = prepared {
        return step("starting the runtime", || prepared.exec(walls));
    }
    if let Some(hooks) = hooks {
        step("running the prelude", || {
            // Init's own is not the program's: an exec would have set it back too.
            rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
            (hooks.after_clone)(policy.prestarted)
        })?;
    }
    let start = step("waiting for the start message", || {
        let message = codec::to_bytes(&Status::Locked(walls));
        wire::send(status.as_fd(), &message, &[])?;
        // Mostly it is there already: the server says beforehand what it requires.
        let start = wire::receive(status.as_fd(), RecvFlags::empty())?;
        match start.and_then(|start| accepted(&start.bytes, walls)) {
            Some(start) => Ok(start),
            None => sys::exit_now(0),
        }
    })?;
    step("bounding its CPU seconds", || bound_cpu(start.cpu_seconds))?;
    if let Some(hooks) = hooks.filter(|_| !start.prelude.is_empty()) {
        step("preparing the runtime", || (hooks.prelude)(&start.prelude))?;
    }
    step("closing files", || {
        sys::close_range(3, libc::c_int::MAX, hooks.is_none())
    })?;
    if hooks.is_some() {
        return Ok(());
    }
    if let Some(loading) = loading {
        return step("starting the runtime", || Err(loading.exec()?));
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
