//! What crosses between our processes: the server, a spawner, the init of a cell and its worker.
//!
//! Each type has one layout ([`codec`](crate::codec)). Nothing here sends or receives.

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;

use crate::codec::{Codec, Reader, Writer, fields, garbled};
use crate::error::Failed;
use crate::policy::{Access, Limits, Link, Loaded, Mount, Policy, Terminal, Tree, View, Zygote};
use crate::subordinate::Subordinate;

/// What a spawner is told once, before it builds its root.
#[derive(Debug, Clone, PartialEq)]
pub struct SpawnerSpec {
    pub view: View,
    /// The first of the host uids this spawner's cells may have; `None` when the
    /// server is an ordinary user.
    pub uid_base: Option<u32>,
    /// The ids of cells of an ordinary user who has some to give.
    pub subordinate: Option<Subordinate>,
    /// Whether cgroups bound the cells.
    pub has_cgroups: bool,
    /// What a sweeper must remove once the server is gone; empty if one is there.
    pub sweep: Vec<PathBuf>,
    /// The runtime to pre-start; its library comes beside the spec.
    pub zygote: Option<Zygote>,
}

/// One request to the spawner; the cell's own [`Policy`] travels in a memory file
/// that the spawner passes on unread.
#[derive(Debug, Clone, PartialEq)]
pub struct SpawnRequest {
    pub slot: u32,
    /// The limits that the cell's /proc tells.
    pub memory: u64,
    pub cpus: f64,
    /// Whether the file descriptors have devices for the slot, before what is of cgroups.
    pub has_devices: bool,
    /// Whether the file descriptors have the directory of the cgroup to clone the cell
    /// into, before the files to join cgroups by.
    pub has_cgroup_directory: bool,
    /// Whether the file descriptors have the library of a [`Loaded`] runtime, before the devices.
    pub has_library: bool,
}

/// What comes back on a cell's status socket.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// From the spawner, with a pidfd.
    Started,
    /// From init, with the loopback listener and the terminal if the policy asks for them, the workspace and,
    /// where no cgroup counts, the other folders to read the cell's usage from.
    Ready { missing: Vec<Missing> },
    /// From the worker, when every wall stands and it waits for the start message.
    Locked(WorkerWalls),
    /// From the spawner, init or the worker.
    Failed(Failed),
    /// From init, when the program has ended.
    Exited(Exit),
}

/// The walls that a worker lays on itself: those that stand, or those that are required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerWalls {
    /// An ABI of landlock; 0 does without.
    pub landlock: u8,
    pub seccomp: bool,
}

impl WorkerWalls {
    /// Whether these are at least as strong as `required`.
    pub fn satisfy(self, required: Self) -> bool {
        self.landlock >= required.landlock && (self.seccomp || !required.seccomp)
    }
}

/// Bytes of a prelude: it fits into a start message.
pub const LONGEST_PRELUDE: usize = crate::wire::MAX_BYTES - 64;

/// The start message: the program starts if the required walls stand, and else never.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub required: WorkerWalls,
    /// CPU seconds after which the kernel ends a process: at most those of the policy, which was made when the program may not have been known.
    pub cpu_seconds: u64,
    /// What a pre-started runtime runs before the program, at most [`LONGEST_PRELUDE`].
    pub prelude: String,
}

/// A wall that this host could not build, and the kernel's reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    pub wall: Wall,
    pub errno: i32,
}

/// The walls that can be missing without the cell failing to start at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Wall {
    Network = 1,
    Ipc = 2,
    Hostname = 3,
    CgroupNamespace = 4,
    Proc = 5,
    Overlay = 6,
    NestedNamespaces = 7,
    Devices = 8,
    Quotas = 9,
    /// Of a container: a cell of ours is told by its spawner.
    Cgroups = 10,
    /// Of gVisor: sockets of its own kernel.
    Sockets = 11,
}

impl Wall {
    const ALL: [Self; 11] = [
        Self::Network,
        Self::Ipc,
        Self::Hostname,
        Self::CgroupNamespace,
        Self::Proc,
        Self::Overlay,
        Self::NestedNamespaces,
        Self::Devices,
        Self::Quotas,
        Self::Cgroups,
        Self::Sockets,
    ];
}

/// How a program ended, as the kernel told init.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The status word of `wait(2)`.
    pub status: i32,
    pub cpu_micros: u64,
    pub max_rss: u64,
    /// Processes that were still there when the program ended; 1 for any number of them
    /// where cgroups count them.
    pub left: u32,
}

fields!(SpawnerSpec {
    view,
    uid_base,
    subordinate,
    has_cgroups,
    sweep,
    zygote,
});
fields!(SpawnRequest {
    slot,
    memory,
    cpus,
    has_devices,
    has_cgroup_directory,
    has_library,
});
fields!(WorkerWalls { landlock, seccomp });
fields!(Start {
    required,
    cpu_seconds,
    prelude
});
fields!(Missing { wall, errno });
fields!(Exit {
    status,
    cpu_micros,
    max_rss,
    left,
});
fields!(Failed { step, errno });
fields!(View {
    trees,
    mounts,
    links
});
fields!(Link { path, target });
fields!(Tree { host, cell });
fields!(Mount { host, cell, access });
fields!(Zygote {
    fresh,
    has_input,
    gathers,
    lingers,
    first,
    argv,
    env,
    script,
    warm,
    fork,
    leave,
});
fields!(Policy {
    argv,
    env,
    limits,
    listen,
    terminal,
    prestarted,
    loaded,
});
fields!(Loaded {
    argv,
    script,
    starter,
    leave,
    glibc,
});
fields!(Terminal {
    rows,
    columns,
    has_stderr,
});
fields!(Limits {
    memory,
    tasks,
    cpus,
    cpu_seconds,
    file_size,
    open_files,
    workspace,
    workspace_inodes,
    tmp,
    shm,
});

impl Codec for Wall {
    fn write(&self, out: &mut Writer) {
        (*self as u8).write(out);
    }

    fn read(input: &mut Reader<'_>) -> io::Result<Self> {
        let number = u8::read(input)?;
        let wall = Self::ALL.into_iter().find(|wall| *wall as u8 == number);
        wall.ok_or_else(garbled)
    }
}

impl Codec for Access {
    fn write(&self, out: &mut Writer) {
        (*self == Self::Write).write(out);
    }

    fn read(input: &mut Reader<'_>) -> io::Result<Self> {
        Ok(match bool::read(input)? {
            false => Self::ReadOnly,
            true => Self::Write,
        })
    }
}

impl Codec for Status {
    fn write(&self, out: &mut Writer) {
        match self {
            Self::Started => out.number(1),
            Self::Ready { missing } => {
                out.number(2);
                missing.write(out);
            }
            Self::Locked(walls) => {
                out.number(3);
                walls.write(out);
            }
            Self::Failed(failed) => {
                out.number(4);
                failed.write(out);
            }
            Self::Exited(exit) => {
                out.number(5);
                exit.write(out);
            }
        }
    }

    fn read(input: &mut Reader<'_>) -> io::Result<Self> {
        Ok(match input.number()? {
            1 => Self::Started,
            2 => Self::Ready {
                missing: Codec::read(input)?,
            },
            3 => Self::Locked(Codec::read(input)?),
            4 => Self::Failed(Codec::read(input)?),
            5 => Self::Exited(Codec::read(input)?),
            _ => return Err(garbled()),
        })
    }
}
