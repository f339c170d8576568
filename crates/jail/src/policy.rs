//! What a cell may see and use: plain data, nothing granted unless named.
//!
//! A [`View`] is what a spawner shows to all of its cells; a [`Policy`] is one
//! cell's own program and limits. Neither knows about languages or requests.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// In place of a program's path: our own binary, started by this name. A cell has no path
/// to it. A path is absolute, so this cannot be one.
pub const ENGINE: &str = "hotcell-engines";

/// A folder of the host that cells see read-only at a path of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tree {
    pub host: PathBuf,
    pub cell: PathBuf,
}

/// What every cell of one spawner sees of the host, beyond `/usr`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct View {
    /// Read-only, each behind an overlay.
    pub trees: Vec<Tree>,
    pub mounts: Vec<Mount>,
    pub links: Vec<Link>,
}

/// A symbolic link at the root of every cell. What it leads to is each cell's own matter: it is resolved
/// within the cell, and may not be there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Link {
    /// An absolute path with one part.
    pub path: PathBuf,
    pub target: PathBuf,
}

/// A folder of the host that the caller has granted: cells see it as it is, at a path
/// that nothing else has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Mount {
    pub host: PathBuf,
    pub cell: PathBuf,
    pub access: Access,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    ReadOnly,
    /// As far as the host's own permissions let the cell's uid.
    Write,
}

/// A runtime that starts once, outside of any cell but with nothing else in reach, and
/// lends its image to cells: each begins where the runtime opens the program's file.
///
/// No program is ever read there, and no secret lives there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Zygote {
    /// Each cell starts the runtime for itself, within its walls, and waits where it
    /// looks for the program's file. Nothing of the image is shared then.
    pub fresh: bool,
    /// Whether its cells' standard input is a pipe, and not empty: runtimes look at
    /// what it is when they start.
    pub has_input: bool,
    /// Whether what its programs print is gathered: [`output`](crate::output).
    pub gathers: bool,
    /// Whether a process may stay when the program ends, which holds its memory until the cell does.
    pub lingers: bool,
    /// What the runtime is given when it reads of the program's file before it is ready, if
    /// it does: it waits when it reads on, and must not care for these bytes.
    pub first: String,
    /// The command line and environment that its cells' programs will have.
    pub argv: Vec<OsString>,
    pub env: Vec<OsString>,
    /// The program's file in the workspace.
    pub script: OsString,
    /// What the runtime runs beforehand, and in each cell before the program: in the
    /// runtime's own language. Long, and the same for many.
    pub warm: Arc<str>,
    pub fork: Arc<str>,
    /// What it runs after the program instead of taking itself apart, if anything;
    /// `{code}` becomes the program's exit code.
    pub leave: Arc<str>,
}

/// One cell's program: what to start and within which limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The program and its arguments; the first is an absolute path inside the cell,
    /// or [`ENGINE`]. Nothing in a cell of a zygote.
    pub argv: Vec<OsString>,
    /// The whole environment as `NAME=value`; nothing is inherited.
    pub env: Vec<OsString>,
    pub limits: Limits,
    /// A port of the cell's own loopback at which the server listens, and all that the cell can
    /// reach: [`Cell::take_listener`](crate::Cell::take_listener). Needs a network namespace.
    pub listen: Option<u16>,
    /// The terminal that its program is started at: [`Cell::take_terminal`](crate::Cell::take_terminal). Not in a cell of a zygote.
    pub terminal: Option<Terminal>,
    /// Whether its program is not known yet, so that there is time for a zygote's clone to
    /// prepare for it.
    pub prestarted: bool,
    /// How it is started with the library in front of its libc, where that can be loaded, instead of by `argv`.
    pub loaded: Option<Loaded>,
}

/// A runtime that has the library in front of its libc, which gathers what the program prints: [`output`](crate::output).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// The file in the workspace where it begins to, when the runtime comes to it; and another that comes first in some commands.
    pub script: OsString,
    pub starter: OsString,
    /// What it runs after the program instead of taking itself apart, if anything.
    pub leave: Arc<str>,
    /// The least minor version of glibc that the library can be loaded with.
    pub glibc: u32,
}

/// A terminal of a cell's own, with standard input and output of its program there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    pub rows: u16,
    pub columns: u16,
    /// Whether standard error is there too, and not a stream of its own.
    pub has_stderr: bool,
}

/// How much a cell may use. Sizes are bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Memory of all processes and in-memory files together.
    pub memory: u64,
    /// Processes and threads together.
    pub tasks: u32,
    /// Processors' worth of time, by quota.
    pub cpus: f64,
    /// CPU seconds after which the kernel ends a process, as a backstop of the deadline.
    pub cpu_seconds: u64,
    pub file_size: u64,
    pub open_files: u64,
    pub workspace: u64,
    pub workspace_inodes: u64,
    pub tmp: u64,
    pub shm: u64,
}

impl Limits {
    /// Whether a cell that was made with `made` will do: only the backstop of the
    /// deadline may be later.
    pub fn fit_into(&self, made: &Self) -> bool {
        let same = Self {
            cpu_seconds: made.cpu_seconds,
            ..self.clone()
        };
        same == *made && self.cpu_seconds <= made.cpu_seconds
    }
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self {
            memory: 512 * MIB,
            tasks: 128,
            cpus: 1.0,
            cpu_seconds: 31,
            file_size: 256 * MIB,
            open_files: 1024,
            workspace: 1024 * MIB,
            workspace_inodes: 100_000,
            tmp: 256 * MIB,
            shm: 64 * MIB,
        }
    }
}
