//! The bytes between our processes: versioned, and checked when read.
//!
//! Server, spawner and init are one binary, so the format is private and simple:
//! a version byte, then fields in order. A reader takes nothing on trust all the
//! same: lengths are bounded by what is there, and a short or long message is an
//! error, never a panic.

pub(crate) mod codec;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use self::codec::{Reader, Writer, garbled, read_memory_file};
use crate::error::Failed;
use crate::policy::{Access, Limits, Link, Mount, Policy, Tree, View, Zygote};

/// What a spawner is told once, before it builds its root.
#[derive(Debug, Clone, PartialEq)]
pub struct SpawnerSpec {
    pub view: View,
    /// The first of the host uids this spawner's cells may have; `None` when the
    /// server is an ordinary user and every cell has that user's own uid.
    pub uid_base: Option<u32>,
    /// Whether control groups bound the cells.
    pub is_grouped: bool,
    /// What a sweeper must remove once the server is gone; empty if one is there.
    pub sweep: Vec<PathBuf>,
    /// The runtime to become; its library comes beside the spec.
    pub zygote: Option<Zygote>,
}

/// One request to the spawner; the cell's own [`Policy`] travels in a memory file
/// that the spawner passes on unread.
#[derive(Debug, Clone, PartialEq)]
pub struct SpawnRequest {
    pub slot: u32,
    /// What the cell's /proc shall say of the machine.
    pub memory: u64,
    pub processors: u32,
    /// The descriptors end with the group to start it in, before those to join by.
    pub birthplace: bool,
}

/// What comes back on a cell's status socket.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// From the spawner, with a pidfd.
    Started,
    /// From init, with the workspace and, if there is one, the cell's /proc.
    Ready { missing: Vec<Missing> },
    /// From the worker, when every wall stands and it waits for the word to go.
    Locked { landlock: u8, seccomp: bool },
    /// From the spawner, init or the worker.
    Failed(Failed),
    /// From init, when the program has ended.
    Exited(Exit),
}

/// The word to go: the program starts if at least these of its own walls stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Go {
    /// An ABI of landlock; 0 does without.
    pub landlock: u8,
    pub seccomp: bool,
}

impl Go {
    /// `word` is what a waiting runtime runs before its program.
    pub(crate) fn to_bytes(self, word: &str) -> Vec<u8> {
        [&[self.landlock, self.seccomp.into()], word.as_bytes()].concat()
    }

    /// The word, if these walls are enough; nothing is for a message that is not ours.
    pub(crate) fn word(bytes: &[u8], landlock: u8, seccomp: bool) -> Option<&[u8]> {
        match bytes {
            [least, needed, word @ ..] if landlock >= *least && (seccomp || *needed == 0) => {
                Some(word)
            }
            _ => None,
        }
    }
}

/// A wall that this host could not build, and the kernel's reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    pub wall: Wall,
    pub errno: i32,
}

impl Missing {
    pub(crate) fn write(&self, out: &mut Writer) {
        out.number(self.wall as u64);
        out.number(self.errno as u64);
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> io::Result<Self> {
        let wall = input.number()?;
        let wall = Wall::ALL.into_iter().find(|w| *w as u64 == wall);
        Ok(Self {
            wall: wall.ok_or_else(garbled)?,
            errno: input.number()? as i32,
        })
    }
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
}

impl Wall {
    const ALL: [Self; 7] = [
        Self::Network,
        Self::Ipc,
        Self::Hostname,
        Self::CgroupNamespace,
        Self::Proc,
        Self::Overlay,
        Self::NestedNamespaces,
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
    /// where control groups count them.
    pub left: u32,
}

impl SpawnerSpec {
    pub fn to_memory_file(&self) -> io::Result<OwnedFd> {
        let mut out = Writer::new();
        out.number(self.uid_base.map_or(0, u64::from));
        out.number(self.is_grouped.into());
        out.number(self.view.trees.len() as u64);
        for tree in &self.view.trees {
            out.bytes(tree.host.as_os_str().as_bytes());
            out.bytes(tree.cell.as_os_str().as_bytes());
        }
        out.number(self.view.mounts.len() as u64);
        for mount in &self.view.mounts {
            out.bytes(mount.host.as_os_str().as_bytes());
            out.bytes(mount.cell.as_os_str().as_bytes());
            mount.access.write(&mut out);
        }
        out.number(self.view.links.len() as u64);
        for link in &self.view.links {
            out.bytes(link.path.as_os_str().as_bytes());
            out.bytes(link.target.as_os_str().as_bytes());
        }
        out.number(self.sweep.len() as u64);
        for path in &self.sweep {
            out.bytes(path.as_os_str().as_bytes());
        }
        out.number(self.zygote.is_some().into());
        if let Some(zygote) = &self.zygote {
            out.number(zygote.fresh.into());
            out.number(zygote.has_input.into());
            out.bytes(zygote.first.as_bytes());
            out.texts(&zygote.argv);
            out.texts(&zygote.env);
            out.bytes(zygote.script.as_bytes());
            out.bytes(zygote.warm.as_bytes());
            out.bytes(zygote.fork.as_bytes());
            out.bytes(zygote.leave.as_bytes());
        }
        out.into_memory_file()
    }

    pub fn from_memory_file(file: OwnedFd) -> io::Result<Self> {
        let bytes = read_memory_file(file)?;
        let mut input = Reader::new(&bytes)?;
        let uid_base = match input.number()? {
            0 => None,
            base => Some(u32::try_from(base).map_err(|_| garbled())?),
        };
        let is_grouped = input.number()? == 1;
        let trees = input.list(|input| {
            Ok(Tree {
                host: input.text()?.into(),
                cell: input.text()?.into(),
            })
        })?;
        let mounts = input.list(|input| {
            Ok(Mount {
                host: input.text()?.into(),
                cell: input.text()?.into(),
                access: Access::read(input)?,
            })
        })?;
        let links = input.list(|input| {
            Ok(Link {
                path: input.text()?.into(),
                target: input.text()?.into(),
            })
        })?;
        let sweep = input.list(|input| Ok(input.text()?.into()))?;
        let zygote = match input.number()? {
            0 => None,
            _ => Some(Zygote {
                fresh: input.number()? == 1,
                has_input: input.number()? == 1,
                first: input.string()?,
                argv: input.list(Reader::text)?,
                env: input.list(Reader::text)?,
                script: input.text()?,
                warm: input.string()?,
                fork: input.string()?,
                leave: input.string()?,
            }),
        };
        input.end()?;
        Ok(Self {
            view: View {
                trees,
                mounts,
                links,
            },
            uid_base,
            is_grouped,
            sweep,
            zygote,
        })
    }
}

impl Policy {
    pub(crate) fn to_memory_file(&self) -> io::Result<OwnedFd> {
        let mut out = Writer::new();
        out.texts(&self.argv);
        out.texts(&self.env);
        let l = &self.limits;
        for number in [
            l.memory,
            l.tasks.into(),
            l.cpus.to_bits(),
            l.cpu_seconds,
            l.file_size,
            l.open_files,
            l.workspace,
            l.workspace_inodes,
            l.tmp,
            l.shm,
        ] {
            out.number(number);
        }
        out.number(self.listen.map_or(0, u64::from));
        out.number(self.waits.into());
        out.into_memory_file()
    }

    pub(crate) fn from_memory_file(file: OwnedFd) -> io::Result<Self> {
        let bytes = read_memory_file(file)?;
        let mut input = Reader::new(&bytes)?;
        let policy = Self {
            argv: input.list(Reader::text)?,
            env: input.list(Reader::text)?,
            limits: Limits {
                memory: input.number()?,
                tasks: u32::try_from(input.number()?).map_err(|_| garbled())?,
                cpus: f64::from_bits(input.number()?),
                cpu_seconds: input.number()?,
                file_size: input.number()?,
                open_files: input.number()?,
                workspace: input.number()?,
                workspace_inodes: input.number()?,
                tmp: input.number()?,
                shm: input.number()?,
            },
            listen: match input.number()? {
                0 => None,
                port => Some(u16::try_from(port).map_err(|_| garbled())?),
            },
            waits: input.number()? == 1,
        };
        input.end()?;
        Ok(policy)
    }
}

impl Access {
    pub(crate) fn write(self, out: &mut Writer) {
        out.number((self == Self::Write).into());
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> io::Result<Self> {
        match input.number()? {
            0 => Ok(Self::ReadOnly),
            1 => Ok(Self::Write),
            _ => Err(garbled()),
        }
    }
}

impl SpawnRequest {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.number(self.slot.into());
        out.number(self.memory);
        out.number(self.processors.into());
        out.number(self.birthplace.into());
        out.0
    }

    pub fn from_bytes(bytes: &[u8]) -> io::Result<Self> {
        let mut input = Reader::new(bytes)?;
        let request = Self {
            slot: u32::try_from(input.number()?).map_err(|_| garbled())?,
            memory: input.number()?,
            processors: u32::try_from(input.number()?).map_err(|_| garbled())?,
            birthplace: input.number()? != 0,
        };
        input.end()?;
        Ok(request)
    }
}

impl Status {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::new();
        match self {
            Self::Started => out.number(1),
            Self::Ready { missing } => {
                out.number(2);
                out.number(missing.len() as u64);
                missing.iter().for_each(|missing| missing.write(&mut out));
            }
            Self::Locked { landlock, seccomp } => {
                out.number(3);
                out.number((*landlock).into());
                out.number((*seccomp).into());
            }
            Self::Failed(failed) => {
                out.number(4);
                out.number(failed.errno as u64);
                out.bytes(failed.step.as_bytes());
            }
            Self::Exited(exit) => {
                out.number(5);
                out.number(exit.status as u64);
                out.number(exit.cpu_micros);
                out.number(exit.max_rss);
                out.number(exit.left.into());
            }
        }
        out.0
    }

    pub fn from_bytes(bytes: &[u8]) -> io::Result<Self> {
        let mut input = Reader::new(bytes)?;
        let status = match input.number()? {
            1 => Self::Started,
            2 => Self::Ready {
                missing: input.list(Missing::read)?,
            },
            3 => Self::Locked {
                landlock: input.number()? as u8,
                seccomp: input.number()? == 1,
            },
            4 => Self::Failed(Failed {
                errno: input.number()? as i32,
                step: input.text()?.to_string_lossy().into_owned(),
            }),
            5 => Self::Exited(Exit {
                status: input.number()? as i32,
                cpu_micros: input.number()?,
                max_rss: input.number()?,
                left: input.number()? as u32,
            }),
            _ => return Err(garbled()),
        };
        input.end()?;
        Ok(status)
    }
}
