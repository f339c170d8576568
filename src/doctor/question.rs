//! The words between the doctor and its probes: one question in a file, one fact a line.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// Where a probe finds its question, in the folder it is started in.
pub const FILE: &str = "probe.json";

/// What a probe is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Say what you are, and try what must not work.
    Facts {
        /// A file that exists outside, for everybody to read.
        canary: Option<String>,
        /// An address of the host's loopback that somebody listens on.
        listener: Option<SocketAddr>,
        /// What a sandbox sees and on which somebody else has a lock.
        locked: Vec<String>,
    },
    /// Take this much memory and keep it.
    Memory { bytes: u64 },
    /// Start this many processes that stay.
    Processes { count: u32 },
    /// Never end.
    Endless,
    /// Lock all that you see, take all that is counted for you but not more than so many of each, and stay.
    Hoard { most: u64 },
    /// Fill what may be filled.
    Fill,
}

/// One thing a probe found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// Real and effective uid, real and effective gid.
    Ids([u32; 4]),
    /// Effective, permitted, inheritable, bounding, ambient.
    Capabilities([u64; 5]),
    NoNewPrivileges(bool),
    /// The kernel's number: 2 is a filter.
    SeccompMode(u32),
    /// Descriptors that are open.
    Open(Vec<i32>),
    /// Names of environment variables, sorted.
    Environment(Vec<String>),
    /// Bytes that `/proc/1/environ` gave.
    InitEnvironment(usize),
    /// Those of the locked paths whose lock is felt.
    Locked(Vec<String>),
    /// Something that must not work. Without an error number it did.
    Tried {
        deed: Deed,
        errno: Option<i32>,
    },
    /// What it sees, each with a lock of its own now.
    Holds(Vec<String>),
    /// How much it could take of what is counted for it, and what refused the next.
    Took {
        quota: Quota,
        count: u64,
        errno: Option<i32>,
    },
    /// How many processes could be started, and what refused the next.
    Started {
        count: u32,
        errno: Option<i32>,
    },
}

/// What a sandbox may have so much of, and what it is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quota {
    InotifyInstances,
    InotifyWatches,
    /// MiB of pipes, which the kernel counts by user alone.
    Pipes,
    OpenFiles,
    /// MiB.
    Workspace,
    WorkspaceFiles,
    /// MiB.
    Tmp,
    TmpFiles,
    /// MiB.
    Shm,
    ShmFiles,
}

/// What a probe tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// Find a way to an address outside. Sends nothing.
    Route,
    /// Connect to what listens on the host's loopback.
    Loopback,
    /// Make a socket to the hypervisor.
    Vsock,
    ReadCanary,
    ReadShadow,
    WriteUsr,
    /// Make a user namespace.
    Namespace,
}
