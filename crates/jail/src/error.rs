//! Why a cell could not be made.

use std::io;

/// The step that finds nothing if our binary is not where it was started from any more.
pub(crate) const ENGINE_STEP: &str = "finding our own binary";

/// One wall-building step that the kernel refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// What was being done, as a phrase: "mounting the root".
    pub step: String,
    /// The kernel's error number, or 0 if it was not the kernel who refused.
    pub errno: i32,
}

/// The step in which the server gives a spawner its ids.
pub(crate) const MAPPING: &str = "giving up root's id";

/// Names what `work` is doing, for whoever has to mend it.
pub(crate) fn step<T>(step: &str, work: impl FnOnce() -> io::Result<T>) -> Result<T, Failed> {
    work().map_err(|error| Failed {
        step: step.to_owned(),
        errno: error.raw_os_error().unwrap_or(0),
    })
}

/// Why the server's side has no cell to give.
#[derive(Debug, thiserror::Error)]
pub enum JailError {
    #[error("could not build the sandbox: {step}: {source}")]
    Step { step: String, source: io::Error },

    #[error("could not start the process that makes sandboxes: {0}")]
    Spawner(io::Error),

    #[error("root cannot change its user id here: {0}")]
    Root(io::Error),

    #[error("the process that makes sandboxes has ended")]
    SpawnerGone,

    #[error("as many sandboxes exist as are possible")]
    NoSlot,

    #[error("could not reach the process that makes sandboxes: {0}")]
    Talk(io::Error),

    #[error("could not prepare the cell's cgroup: {0}")]
    Cgroup(io::Error),

    #[error("the process that makes sandboxes sent an invalid message")]
    Garbled,
}

impl From<Failed> for JailError {
    fn from(failed: Failed) -> Self {
        let source = match failed.errno {
            0 => io::ErrorKind::Other.into(),
            errno => io::Error::from_raw_os_error(errno),
        };
        match failed.step {
            step if step == MAPPING => Self::Root(source),
            step => Self::Step { step, source },
        }
    }
}

impl JailError {
    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<&'static str> {
        match (self, self.errno()) {
            (_, Some(libc::EMFILE | libc::ENFILE)) => {
                Some("Raise the limit on open files (`ulimit -n`).")
            }
            (_, Some(libc::EAGAIN)) => {
                Some("Raise the limit on processes of this user (`ulimit -u`), or stop some.")
            }
            (Self::Step { step, .. }, Some(libc::EPERM)) if step.contains("namespace") => Some(
                "Run `hotcell doctor`: this host may forbid user namespaces (sysctl kernel.unprivileged_userns_clone=1, or AppArmor's kernel.apparmor_restrict_unprivileged_userns=0).",
            ),
            (Self::Step { .. }, Some(libc::ENOSPC)) => Some(
                "Raise the sysctl user.max_user_namespaces (and user.max_mnt_namespaces, user.max_net_namespaces): it is used up or 0.",
            ),
            (Self::Step { step, .. }, _) if step == ENGINE_STEP => {
                Some("Start hotcell again: its file has been moved or replaced.")
            }
            (Self::Root(_), _) => Some(
                "Start it as an ordinary user; or, in a container, with CAP_SYS_ADMIN and all user ids mapped.",
            ),
            (Self::NoSlot, _) => Some("Wait for a run to end."),
            (Self::SpawnerGone | Self::Garbled, _) => Some("Try again."),
            _ => Some("Run `hotcell doctor` for what this host offers."),
        }
    }

    fn errno(&self) -> Option<i32> {
        match self {
            Self::Step { source, .. }
            | Self::Spawner(source)
            | Self::Root(source)
            | Self::Talk(source)
            | Self::Cgroup(source) => source.raw_os_error(),
            Self::SpawnerGone | Self::NoSlot | Self::Garbled => None,
        }
    }
}
