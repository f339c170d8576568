//! Why there is no cell for a program, or not what was wanted of one.

use std::io;

use jail::JailError;

use super::{ContainerError, PlaceError};
use crate::hint::Hint;

#[derive(Debug, thiserror::Error)]
pub enum CellError {
    #[error(transparent)]
    Jail(#[from] JailError),

    #[error(transparent)]
    Container(#[from] ContainerError),

    #[error("this host cannot build a layer of the sandbox that the run needs: {name}: {detail}")]
    Wall { name: &'static str, detail: String },

    #[error("the run needs a kernel of its own, and a sandbox of {provider} shares the host's")]
    HostKernel { provider: &'static str },

    #[error(transparent)]
    Place(#[from] PlaceError),

    #[error("could not copy the built program out of the sandbox: {0}")]
    Collect(io::Error),

    #[error("the sandbox was lost while it was being made")]
    Lost,

    #[error("making the sandbox took too long")]
    Slow,

    #[error("could not make a pipe: {0}")]
    Pipe(io::Error),

    #[error("could not listen on the program's loopback: {0}")]
    Loopback(io::Error),

    #[error("could not start a thread: {0}")]
    Thread(io::Error),
}

impl CellError {
    /// Whether a cell was lost on the way, so that trying again may help.
    pub fn is_lost(&self) -> bool {
        let gone = |error: &JailError| matches!(error, JailError::SpawnerGone);
        match self {
            Self::Lost | Self::Slow => true,
            Self::Jail(error) => gone(error),
            _ => false,
        }
    }

    /// Whether this host has no such sandbox, so that another kind may do.
    pub fn is_of_host(&self) -> bool {
        let is_of_host = |error: &JailError| {
            use JailError::{Cgroup, Root, Spawner, SpawnerGone, Step, Talk};
            matches!(
                error,
                Step { .. } | Spawner(_) | SpawnerGone | Root(_) | Talk(_) | Cgroup(_)
            )
        };
        match self {
            Self::Wall { .. } => true,
            Self::Jail(error) => is_of_host(error),
            _ => false,
        }
    }

    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<Hint> {
        let text = match self {
            Self::Place(error) => return error.hint(),
            Self::Container(error) => return error.hint().map(Into::into),
            Self::HostKernel { .. } => Some("Use gVisor (`isolation = \"gvisor\"`)."),
            Self::Wall { .. } => return Some(Hint::AllowReduced),
            Self::Jail(error) => error.hint(),
            Self::Lost | Self::Slow => Some("Try again; if it fails again, run `hotcell doctor`."),
            Self::Pipe(_) | Self::Loopback(_) => {
                Some("Raise the limit on open files (`ulimit -n`).")
            }
            Self::Thread(_) => {
                Some("Raise the limit on processes of this user (`ulimit -u`), or stop some.")
            }
            Self::Collect(_) => None,
        };
        text.map(Into::into)
    }
}
