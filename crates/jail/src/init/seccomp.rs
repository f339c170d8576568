//! The system call filter of a cell, and the tighter one of its pid 1.
//!
//! What is allowed is data (`table`); how it becomes a program the kernel can run is in `bpf`.
//! Nothing here knows why a cell exists or which process asks. The programs are pure functions of
//! the table, so the spawner builds them once; only [`install`] touches the kernel: in the worker
//! after `no_new_privs`, as the last wall before `exec`, and in pid 1 once the worker is forked.

use std::io;

use libc::sock_filter;

use crate::sys;

mod bpf;
mod numbers;
pub mod rule;
mod table;
#[cfg(test)]
mod tests;

use rule::{Rule, Verdict};

/// Which process the filter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// The program in a cell and everything it starts.
    ///
    /// `grouped` says whether cgroups bound the cell. Without them some calls are away:
    /// those for memory that no process maps, and the one that undoes the pinning to processors.
    ///
    /// `writes_host` says whether it may write to a folder of the host, where no file may get a set-user-id bit.
    Cell { grouped: bool, writes_host: bool },
    /// Our pid 1, which only waits, reports and exits.
    Init,
}

/// The filter as a BPF program, ready for [`install`].
pub fn program(filter: Filter) -> Vec<sock_filter> {
    bpf::compile(&rules(filter), unnamed(filter))
}

/// Lays `program` on the calling thread, for good.
///
/// It needs `no_new_privs`, and the process must have one thread: the others would go on without.
pub fn install(program: &[sock_filter]) -> io::Result<()> {
    sys::seccomp_set_filter(program)
}

/// The rows that decide for `filter`; each system call is named in at most one of them.
pub fn rules(filter: Filter) -> Vec<Rule> {
    match filter {
        Filter::Cell {
            grouped,
            writes_host,
        } => {
            let memory = match grouped {
                true => table::GROUPED,
                false => table::UNGROUPED,
            };
            let files = match writes_host {
                true => table::HOST_FILES,
                false => table::OWN_FILES,
            };
            [table::CELL, memory, files].concat()
        }
        Filter::Init => table::INIT.to_vec(),
    }
}

/// What becomes of a call that no row names.
///
/// For a cell that is a number newer than the table, one from a hole in the architecture's list, or
/// one with the x32 bit (bit 30) set. ENOSYS is what an older kernel would say, so libc falls back;
/// EPERM there broke containers twice (faccessat2, clone3).
pub fn unnamed(filter: Filter) -> Verdict {
    match filter {
        Filter::Cell { .. } => Verdict::Errno(libc::ENOSYS),
        // Our own code has no business outside its list: if it gets there, it is no longer ours.
        Filter::Init => Verdict::Kill,
    }
}

/// A short name for exactly this program, for `doctor`: 64-bit FNV-1a in hexadecimal.
///
/// It tells two builds apart; it is no defence against someone who wants a collision.
pub fn hash(program: &[sock_filter]) -> String {
    let bytes = program.iter().flat_map(|instruction| {
        let [code_low, code_high] = instruction.code.to_le_bytes();
        let [k0, k1, k2, k3] = instruction.k.to_le_bytes();
        [
            code_low,
            code_high,
            instruction.jt,
            instruction.jf,
            k0,
            k1,
            k2,
            k3,
        ]
    });
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}
