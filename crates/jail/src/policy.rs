//! What a cell may see and use: plain data, nothing granted unless named.
//!
//! A [`View`] is what a spawner shows to all of its cells; a [`Policy`] is one
//! cell's own program and limits. Neither knows about languages or requests.

use std::ffi::OsString;
use std::path::PathBuf;

/// In place of a program's path: the program of this name that lies beside our own
/// binary, which a cell has no path to. A path is absolute, so this cannot be one.
pub const ENGINE: &str = "hotcell-engines";

/// A folder of the host that cells see read-only at a path of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tree {
    pub host: PathBuf,
    pub cell: PathBuf,
}

/// The read-only trees that every cell of one spawner sees, beyond `/usr`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct View {
    pub trees: Vec<Tree>,
}

/// One cell's program: what to start and within which limits.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The program and its arguments; the first is an absolute path inside the cell,
    /// or [`ENGINE`].
    pub argv: Vec<OsString>,
    /// The whole environment as `NAME=value`; nothing is inherited.
    pub env: Vec<OsString>,
    pub limits: Limits,
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
    /// How many processors a program shall see.
    pub fn processors(&self) -> u32 {
        self.cpus.ceil() as u32
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
